"""`tidemark serve`: the page at an address, until SIGTERM or Ctrl-C."""

import socket
from collections.abc import Callable

import uvicorn

from orchestration.conf.model import Conf
from orchestration.conf.secrets import secret
from orchestration.errors import TidemarkError
from orchestration.web.security import LOCAL
from orchestration.web.site import Site


def serve(conf: Conf, port: int | None, tell: Callable[[str], None]) -> None:
    """`port`: instead of that of conf; 0: any free one."""
    page = conf.page
    try:
        listener = socket.create_server((page.host, page.port if port is None else port), backlog=256)
    except OSError as error:
        place = f"{page.host}:{page.port if port is None else port}"
        raise TidemarkError(f"the page cannot be at {place}: {error.strerror}; set page.port in pipeline.yml, or --port.") from error
    token = page.token and secret(page.token, "pipeline.yml")
    taken = listener.getsockname()[1]
    shown = f"[{page.host}]" if ":" in page.host else page.host
    hosts = (*LOCAL, shown, *page.names)
    with listener:
        tell(f"http://{shown}:{taken}/{f'?token={token}' if token else ''} shows what is true now")
        config = uvicorn.Config(
            Site(conf).application(hosts, token),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        uvicorn.Server(config).run(sockets=[listener])
