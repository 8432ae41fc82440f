"""The settings that the values of flags make.

Lives here: settings that are more than the value of one flag. Must not live here: the flags
(table.py), what settings mean (config.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from strongroom import config
from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.console import console_settings
from strongroom.cli.flags.database import database_settings
from strongroom.cli.flags.flag import Flag
from strongroom.cli.flags.given import Values
from strongroom.cli.flags.url_as_directory import DATA_IS_URL, is_url
from strongroom.config import (
    ConfigError,
    LogSettings,
    ObservationSettings,
    PfxFile,
    SelfSigned,
    Settings,
    SetupSource,
    SmbFlags,
    TlsFiles,
)

T = TypeVar("T")


def settings_of(flags: Sequence[Flag], values: Values, environment: Mapping[str, str]) -> Settings:
    """Return the settings of these values. End the command if they cannot be used."""
    data = _data(values)
    file = values.path("accounts-file")
    given = values.texts("account")
    as_it_is: dict[str, Any] = {
        flag.setting: values[flag.name].value for flag in flags if flag.setting is not None
    }
    return Settings(
        data=data,
        store=database_settings(values),
        smb=_smb(values),
        console=_or_fail(console_settings, values),
        accounts=_or_fail(config.account_sources, given, file, data, environment),
        tls=_tls(values),
        oauth=_or_fail(_oauth, values),
        roles=config.roles_source(values.path("roles-file"), data),
        rehydration_s=_rehydration_s(values),
        setup=_setup(values, environment),
        log=_log(values),
        observation=_observation(values),
        **as_it_is,
    )


def _data(values: Values) -> Path | None:
    """The data directory. It would be made, so a URL in its place is refused; its text may have a
    password."""
    data = None if values["in-memory"].value else values.path("data")
    if data is not None and is_url(data):
        values["data"].refuse(DATA_IS_URL)
    return data


def _or_fail(read: Callable[..., T], *given: object) -> T:
    """Return the result of `read`; end the command if it cannot be used."""
    try:
        return read(*given)
    except ConfigError as error:
        fail(Exit.SETTINGS, str(error))


def _setup(values: Values, environment: Mapping[str, str]) -> SetupSource | None:
    file = values.path("setup")
    overwrites = values.known("setup-overwrite", bool)
    only = values.known("setup-only", bool)
    return None if file is None else SetupSource(file, overwrites, environment, only)


def _log(values: Values) -> LogSettings:
    level = cast("config.LogLevel", values.known("log-level", str))
    return LogSettings(level, cast("config.LogFormat", values.known("log-format", str)))


def _observation(values: Values) -> ObservationSettings:
    names = cast("config.AccessLogNames", values.known("access-log-names", str))
    return ObservationSettings(values.one("access-log", str), names, values.known("otel", bool))


def _smb(values: Values) -> SmbFlags | None:
    if not values["smb"].value:
        return None
    encryption = cast("config.SmbEncryption", values.known("smb-encryption", str))
    return SmbFlags(values.known("smb-port", int), encryption)


def _tls(values: Values) -> TlsFiles | PfxFile | SelfSigned | None:
    certificate, key, pfx = (values.path(name) for name in ("cert", "key", "pfx"))
    if pfx is not None:
        return PfxFile(pfx, values.path("pfx-password-file"))
    if certificate is not None and key is not None:
        return TlsFiles(certificate, key)
    return SelfSigned() if values["tls"].value else None


def _oauth(values: Values) -> config.OAuth | None:
    mode = cast("Literal['basic'] | None", values.one("oauth", str))
    issuer, keys, tenant = (
        values.one(name, str) for name in ("oauth-issuer", "oauth-keys", "oauth-tenant")
    )
    return config.oauth_settings(mode, issuer, keys, values.texts("oauth-audience"), tenant)


def _rehydration_s(values: Values) -> tuple[float, float]:
    """Return the delays of both priorities, in seconds: Standard, High."""
    standard_s = values.known("rehydration-delay", float)
    high_s = values.one("rehydration-delay-high", float)
    return standard_s, standard_s if high_s is None else high_s
