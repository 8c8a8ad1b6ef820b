# SPDX-License-Identifier: Apache-2.0
"""DUT: what `ssh` says when it does not connect, as an error of ours."""

from __future__ import annotations

from evenhand.base.errors import HostError


def no_answer(destination: str, said: str) -> HostError:
    return HostError(
        f"the DUT does not answer: {said}",
        code="rig.dut-does-not-answer",
        where=f"[dut] ssh, {destination}",
        next_step=f"Check whether it is on and can be reached from here: ssh {destination} true",
    )


def why_not(destination: str, said: list[str]) -> HostError:
    """What ssh says, which is English everywhere, as an error of ours."""
    text = "\n".join(said)
    last = said[-1] if said else "ssh ended without a message"
    where = f"[dut] ssh, {destination}"
    if "IDENTIFICATION HAS CHANGED" in text:
        return HostError(
            "its host key has changed: it is another host, or the connection is intercepted",
            code="rig.host-key-changed",
            where=where,
            next_step="If it was reinstalled, remove the old key: ssh-keygen -R HOST (ssh prints the line)."
            " Then connect by hand once.",
        )
    if "Host key verification failed" in text:
        return HostError(
            "its host key is not known on this host",
            code="rig.host-key-unknown",
            where=where,
            next_step=f"Connect by hand once, and verify the key: ssh {destination} true",
        )
    if "Permission denied" in text or "Too many authentication failures" in text:
        return HostError(
            f"it accepts none of your keys, and a password is never asked for ({last})",
            code="rig.ssh-key-refused",
            where=where,
            next_step=f"Add your key there (ssh-copy-id {destination}); if the key has a"
            " passphrase, add it to an agent (ssh-add).",
        )
    return no_answer(destination, last)
