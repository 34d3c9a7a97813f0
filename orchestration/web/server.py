"""`tidemark serve`: the page at an address, until SIGTERM or Ctrl-C."""

import gc
from collections.abc import Callable
from urllib.parse import urlencode

import uvicorn

from orchestration.conf.model import Conf
from orchestration.conf.values import is_loopback
from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.connectors.collector.sockets import bind, place
from orchestration.errors import ConfError, TidemarkError
from orchestration.secrets import secret
from orchestration.web.security import LOCAL
from orchestration.web.site import Site

LINK = "`tidemark serve --link`"
LEAST_TOKEN = 16
EVERYWHERE = ("0.0.0.0", "::")


class PageProtocol(BoundedHttpProtocol):
    """Fewer connections than a process may have open files."""

    most_connections = 400


def link(conf: Conf, port: int | None) -> str:
    """Return the address of the page with its token, for whoever may read the conf's secrets."""
    page, token = conf.page, _token(conf)
    host = next(iter(page.names), LOCAL[0]) if page.host in EVERYWHERE else page.host
    return f"http://{f'[{host}]' if ':' in host else host}:{port or page.port}/" + (f"?{urlencode({'token': token})}" if token else "")


def serve(conf: Conf, port: int | None, notify: Callable[[str], None]) -> None:
    """`port`: instead of that of conf; 0: any free one."""
    page = conf.page
    try:
        listener = bind(page.host, page.port if port is None else port)
    except OSError as error:
        where = f"{page.host}, port {page.port if port is None else port}"
        raise TidemarkError(f"the page cannot be at {where}: {error.strerror}; set page.port in pipeline.yml, or --port.") from error
    token = _token(conf)
    hosts = (*LOCAL, f"[{page.host}]" if ":" in page.host else page.host, *page.names)
    gc.freeze()  # the conf of ten thousand groups stays: else each collection looks through it, which doubles the time of a view
    with listener:
        # Without the token: `tidemark up` writes this line into its journal, and others into their logs.
        notify(f"http://{place(listener)}/ shows what is true now" + (f"; {LINK} prints its address with the token" if token else ""))
        config = uvicorn.Config(
            Site(conf).application(hosts, token),
            http=PageProtocol,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        uvicorn.Server(config).run(sockets=[listener])


def _token(conf: Conf) -> str | None:
    """Return the token; ConfError for one that others could guess, where they reach the page."""
    token = conf.page.token and secret(conf.page.token, "pipeline.yml")
    if token and len(token) < LEAST_TOKEN and (conf.page.names or not is_loopback(conf.page.host)):
        raise ConfError(
            f"page.token has {len(token)} characters; where others reach the page it needs {LEAST_TOKEN}: `openssl rand -hex 16`."
        )
    return token
