"""The `mcpServers` file on disk."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pml_gateway.domain.servers.references import Surroundings
from pml_gateway.domain.servers.servers_file import ServerEntry, ServersInvalid, read_servers

log = logging.getLogger(__name__)

_EDITORS_FOLDERS: Final = (".vscode", ".cursor", ".idea", ".kiro", ".roo", ".gemini", ".pml")
"""Folders of a workspace in which a file of servers may be."""


def read_file(file: Path | None, environment: Mapping[str, str]) -> tuple[ServerEntry, ...]:
    """Read the entries of a file; none where there is no file. Raises ServersInvalid that names
    the file."""
    if file is None or not file.is_file():
        if file is not None:
            log.info("there is no file %s, so there are no MCP servers", file)
        return ()
    try:
        text = file.read_text(encoding="utf-8")
        return read_servers(text, Surroundings(environment, places_of(file, environment)))
    except (OSError, UnicodeDecodeError) as error:
        raise ServersInvalid((f"{file}: cannot be read: {error}",)) from error
    except ServersInvalid as error:
        raise ServersInvalid(tuple(f"{file}: {fault}" for fault in error.faults)) from error


def places_of(file: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what editors fill in: the workspace is the file's folder, or the one that the
    editor's folder with the file is in."""
    folder = file.absolute().parent
    workspace = folder.parent if folder.name in _EDITORS_FOLDERS else folder
    return {
        "workspaceFolder": str(workspace),
        "workspaceFolderBasename": workspace.name,
        "userHome": environment.get("HOME") or str(Path.home()),
    }
