"""`trialfleet view`: pages about one campaign, on loopback."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trialfleet_analysis.source import find_source
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_analysis.viewer.access import Access
    from trialfleet_ledger.store.protocol import Store


@click.command("view")
@click.argument("campaign", required=False)
@click.option("--store", metavar="URL", help="The store, if it is not the campaign file's.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. [default: a free one]")
@click.option("--no-open", is_flag=True, help="Print the address without opening it in the browser.")
@click.option(
    "--bundle",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the pages into this new folder instead, as files that open without a server.",
)
def view(campaign: str | None, store: str | None, port: int, no_open: bool, folder: Path | None) -> None:
    """Look at a campaign in the browser: the answer, rates, pairs of trials side by side, every trial.

    CAMPAIGN is a campaign file, a campaign's folder in its store (also s3://bucket/prefix/name), or its name with
    --store; by default the one that was written to last in --store, or in `runs`. With a file, or a name and
    --store, it waits for a campaign that does not exist yet. The address holds a token: who has it can read the
    campaign while this command runs. While trials are missing, rates are interim and the look is recorded.
    """
    from trialfleet_analysis.viewer.access import Access
    from trialfleet_ledger.store.newest import find_newest_campaign

    if campaign is None:
        campaign, store = find_newest_campaign(store), None
    source = find_source(campaign, store)
    opened = source.open()
    if folder is not None:
        _write(opened, source.campaign, folder)
        return
    with suppress(KeyboardInterrupt), listening(port) as listener:
        access = Access(listener.getsockname()[1])
        click.echo(f"{source.campaign}: {access.address}")
        click.echo("Ctrl-C ends it", err=True)
        with doorway(access) as page:
            if not no_open:
                click.launch(str(page))
            serve(opened, source.campaign, access, listener)


def _write(store: Store, campaign: str, folder: Path) -> None:
    from trialfleet_analysis.viewer.answer_process import computed
    from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
    from trialfleet_analysis.viewer.folder import write_folder

    number = write_folder(WatchedCampaign(store, campaign, computed), folder)
    click.echo(f"{plural(number, 'file')}: {folder / 'index.html'}")


@contextmanager
def listening(port: int) -> Generator[socket.socket]:
    """A socket on loopback alone. Raises `OperatorError` where the port is taken, or not for this user."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(64)
        except OSError as error:
            raise OperatorError(
                f"port {port} cannot be used: {error.strerror}",
                where="--port",
                hint="give another port, or leave --port out: a free one is chosen",
            ) from error
        yield listener


def serve(store: Store, campaign: str, access: Access, listener: socket.socket) -> None:
    """Until Ctrl-C or SIGTERM. What it imports takes as long as a browser's start: that comes first."""
    import uvicorn

    from trialfleet_analysis.viewer.addresses import ServedAddresses
    from trialfleet_analysis.viewer.answer_process import AnswerProcess
    from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
    from trialfleet_analysis.viewer.server import application
    from trialfleet_analysis.viewer.site import CampaignSite

    with closing(AnswerProcess()) as answers, suppress(KeyboardInterrupt):
        site = CampaignSite(WatchedCampaign(store, campaign, answers), ServedAddresses())
        config = uvicorn.Config(
            application(site, access),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
        )
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def doorway(access: Access) -> Generator[Path]:
    """A file that leads the browser to the address: everybody on the machine can read a program's arguments."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-view-") as folder:
        page = Path(folder) / "open.html"
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(access.address)}">\n')
        page.chmod(0o600)
        yield page
