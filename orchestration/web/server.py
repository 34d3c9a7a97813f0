"""`tidemark serve`: the page at an address, until SIGTERM or Ctrl-C."""

import gc
from collections.abc import Callable

import uvicorn

from orchestration.conf.model import Conf
from orchestration.conf.secrets import secret
from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.connectors.collector.listener import bind, place
from orchestration.errors import TidemarkError
from orchestration.web.security import LOCAL
from orchestration.web.site import Site


def serve(conf: Conf, port: int | None, tell: Callable[[str], None]) -> None:
    """`port`: instead of that of conf; 0: any free one."""
    page = conf.page
    try:
        listener = bind(page.host, page.port if port is None else port)
    except OSError as error:
        where = f"{page.host}, port {page.port if port is None else port}"
        raise TidemarkError(f"the page cannot be at {where}: {error.strerror}; set page.port in pipeline.yml, or --port.") from error
    token = page.token and secret(page.token, "pipeline.yml")
    hosts = (*LOCAL, f"[{page.host}]" if ":" in page.host else page.host, *page.names)
    gc.freeze()  # the conf of ten thousand groups stays: else each collection looks through it, which doubles the time of a view
    with listener:
        tell(f"http://{place(listener)}/{f'?token={token}' if token else ''} shows what is true now")
        config = uvicorn.Config(
            Site(conf).application(hosts, token),
            http=BoundedHttpProtocol,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        uvicorn.Server(config).run(sockets=[listener])
