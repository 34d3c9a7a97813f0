"""Pictures of the live page over a lake: `python -m tests.page_pictures artifacts`; nothing where there is no chromium."""

import sys
from pathlib import Path

from tests.pages import CHROMIUM, chromium, served

VIEWS = {"page": "/", "page-group": "/groups?group=kitchen&span=day&device=oven-01&device=oven-02&device=oven-03", "page-alerts": "/alerts"}


def main() -> int:
    """Each view in light and dark, into the folder that is named. The conf is ./conf."""
    folder = Path(sys.argv[1])
    if not Path(CHROMIUM).exists():
        print("no picture of the page: chromium is missing (`make chromium`)", file=sys.stderr)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    with served(Path("conf").absolute()) as server, chromium() as browser:
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 1000})
            for name, path in VIEWS.items():
                page = context.new_page()
                page.goto(f"{server.address}{path}")
                page.wait_for_load_state("load")
                file = folder / f"{name}-{scheme}.png"
                page.screenshot(path=file)
                print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
