# SPDX-License-Identifier: Apache-2.0
"""Root images of virtual machines, made of Debian packages without a loop mount, and kept until their recipe
changes.

`mmdebstrap` unpacks the packages, from the sources that this machine's own apt uses; `mke2fs -d` makes a file
system of them. Root needs nothing else; another user needs `uidmap` and `fakeroot`, and a range of his own in
/etc/subuid. The machine's first process is a script of the recipe: no systemd, so that a machine without KVM
is up in seconds.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from evenhand.base.errors import HostError, RequestError
from evenhand.base.locks import lock_file, lock_file_within, locker, why_not_lockable

FORMAT = 1
"""Format of what this file makes of a recipe: another number makes all images anew."""
BASE_PACKAGES = ("linux-image-amd64", "kmod", "iproute2", "procps")
NEEDS = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs"}
"""Program and its package."""
NEEDS_WITHOUT_ROOT = {"newuidmap": "uidmap", "fakeroot": "fakeroot"}
INIT = "/sbin/evenhand-init"
_BUILD_TIMEOUT_S = 1800
_STDERR_LINES = 15

# The kernel's modules for the disk alone: an initial system with all of them takes a machine without KVM
# seconds to unpack.
_SMALL_INITRD = """set -e
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/etc/initramfs-tools/hooks"
echo MODULES=list >"$1/etc/initramfs-tools/conf.d/evenhand"
cat >"$1/etc/initramfs-tools/hooks/evenhand" <<'END'
#!/bin/sh
[ "$1" != prereqs ] || exit 0
. /usr/share/initramfs-tools/hook-functions
manual_add_modules virtio_pci virtio_blk ext4
END
chmod 755 "$1/etc/initramfs-tools/hooks/evenhand"
"""

# In the chroot runs the kernel of this machine, for which a package would build its modules.
_MODULES = """set -e
kernel=$(basename "$1"/lib/modules/*)
chroot "$1" dkms autoinstall -k "$kernel" >&2
for module in {modules}; do
    chroot "$1" modinfo -k "$kernel" "$module" >/dev/null
done
"""

# initramfs-tools hands over /proc, /sys, /dev and /run. If the recipe's script ends, so does the machine.
_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
ip link set lo up
/bin/sh /sbin/evenhand-boot
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFile:
    """A file to put into the image."""

    path: str
    """Where, absolute."""
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecipe:
    """All that an image depends on."""

    name: str
    """A word; of each name only the newest image is kept."""
    packages: tuple[str, ...]
    """Beside BASE_PACKAGES, with what they depend on; nothing that is only recommended. `a|b` is the first of
    these that this machine's apt knows, `a|-` is a or nothing; a pattern of apt, such as
    `?name(^librte-net-)`, is all that it fits."""
    boot: str
    """The script that the first process runs, as root, when file systems and `lo` are there. When it ends the
    machine switches itself off. No udev runs: `modprobe` what is needed."""
    files: tuple[ImageFile, ...] = ()
    modules: tuple[str, ...] = ()
    """Kernel modules that DKMS builds when the image is made, from packages of the above, with
    linux-headers-amd64; no image is made without them."""
    suite: str = ""
    """Debian's code name; that of this machine by default."""
    size_mb: int = 3000
    """Size of the file system in MB; the file has holes where nothing is."""

    def key(self, sources: Sequence[str]) -> str:
        """The same for the same image."""
        content = asdict(self) | {
            "files": [
                (file.path, hashlib.sha256(file.content).hexdigest(), file.mode) for file in self.files
            ],
            "made_by": [FORMAT, BASE_PACKAGES, _SMALL_INITRD, _INIT, *([_MODULES] if self.modules else [])],
            "sources": list(sources),
        }
        if not self.modules:  # images from before there were any are kept
            del content["modules"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class VmImage:
    """What a machine boots. Never written to: a machine gets a layer of its own above it."""

    folder: Path

    @property
    def disk(self) -> Path:
        """The root file system, ext4, without partitions."""
        return self.folder / "root.img"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"


def host_suite(root: Path = Path("/")) -> str:
    """The code name of this machine's Debian. HostError if it is not Debian."""
    with suppress(OSError):
        lines = dict(
            line.split("=", 1) for line in (root / "etc/os-release").read_text().splitlines() if "=" in line
        )
        if lines.get("ID", "").strip('"') == "debian" and "VERSION_CODENAME" in lines:
            return lines["VERSION_CODENAME"].strip('"')
    raise HostError(
        "this is not a Debian system with a code name",
        code="rig.not-debian",
        where="/etc/os-release",
        next_step="Give the Debian release, such as trixie.",
    )


def apt_sources(suite: str) -> list[str]:
    """Lines for sources.list: Debian as this machine's apt has it, for this suite.

    Raises:
        HostError: apt knows no Debian.
    """
    form = "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)"
    found = _run(
        ["apt-get", "indextargets", "--format", form, "Created-By: Packages"],
        what="apt does not report its sources",
    )
    own = host_suite()
    lines = []
    for line in found.splitlines():
        origin, uri, release, component = (line.split() + [""] * 4)[:4]
        if (
            origin == "Debian"
            and (release == own or release.startswith(f"{own}-"))
            and "backports" not in release
        ):
            lines.append(f"deb {uri} {release.replace(own, suite, 1)} {component}")
    if not lines:
        raise HostError(
            f"apt has no package lists of Debian {own}",
            code="rig.no-package-lists",
            where="apt-get indextargets",
            next_step="Run `sudo apt-get update`, then run this again.",
        )
    return sorted(set(lines))


def cache_folder() -> Path:
    """Where images are kept: `evenhand/images` in $XDG_CACHE_HOME, ~/.cache by default."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "evenhand" / "images"


def vm_image(recipe: ImageRecipe, *, say: Callable[[str], None] = lambda _: None) -> VmImage:
    """The image of this recipe: the kept one, or a new one (minutes). Who comes while another makes it waits.

    Args:
        say: Gets a line when an image has to be made.

    Raises:
        RequestError: The recipe's name or a file's path is not valid.
        HostError: Programs are missing, or packages cannot be had.
    """
    if not recipe.name.replace("-", "").isalnum():
        raise RequestError(
            f"{recipe.name!r} is not a name for an image",
            code="rig.not-an-image-name",
            where="image",
            next_step="Use letters, digits and '-'.",
        )
    for file in recipe.files:
        if not file.path.startswith("/") or ".." in Path(file.path).parts:
            raise RequestError(
                f"{file.path!r} is not an absolute path",
                code="rig.path-not-absolute",
                where="image",
                next_step="Write it beginning with /.",
            )
    suite = recipe.suite or host_suite()
    sources = apt_sources(suite)
    folder = cache_folder() / f"{recipe.name}-{recipe.key(sources)}"
    image = VmImage(folder=folder)
    if folder.is_dir():
        return image
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"images cannot be stored: {error.strerror}",
            code="rig.image-not-writable",
            where=str(folder.parent),
            next_step="Set XDG_CACHE_HOME to a folder that belongs to you.",
        ) from error
    with _alone(folder.parent / f".{recipe.name}.lock", say):
        if folder.is_dir():  # by whoever was waited for
            return image
        _check_programs()
        say(
            f"making an image of Debian {suite} with {', '.join(recipe.packages)} in {folder}"
            " (a few minutes, only once)"
        )
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as new:
            _build(recipe, suite, sources, Path(new))
            (Path(new) / "image").rename(folder)  # a whole one, or none
        for old in folder.parent.glob(f"{recipe.name}-{'[0-9a-f]' * 16}"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)  # a machine that runs on it keeps its open files
    return image


def _build(recipe: ImageRecipe, suite: str, sources: Sequence[str], work: Path) -> None:
    is_root = os.geteuid() == 0
    packages, additions, image = work / "packages.tar", work / "additions.tar", work / "image"
    image.mkdir()
    available = _chosen(recipe.packages)
    command = [
        "mmdebstrap",
        f"--mode={'root' if is_root else 'unshare'}",
        "--variant=minbase",
        "--format=tar",
        "--quiet",
        f"--include={','.join((*BASE_PACKAGES, *available))}",
        f"--essential-hook={_SMALL_INITRD}",
        *_build_modules(recipe.modules),
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        suite,
        str(packages),
        "-",
    ]
    _run(command, what="the packages cannot be assembled", given="\n".join(sources) + "\n")
    with tarfile.open(additions, "w") as archive:
        for file in (
            ImageFile(path=INIT, content=_INIT.encode(), mode=0o755),
            ImageFile(path="/sbin/evenhand-boot", content=recipe.boot.encode(), mode=0o755),
            *recipe.files,
        ):
            entry = tarfile.TarInfo(_behind_links(file.path))
            entry.size, entry.mode = len(file.content), file.mode
            archive.addfile(entry, io.BytesIO(file.content))
    # In one go: without root only fakeroot remembers whose the files are.
    tree, disk = work / "tree", image / "root.img"
    script = f"""set -e
mkdir {_quoted(tree)}
tar --extract --numeric-owner --file {_quoted(packages)} --directory {_quoted(tree)} --exclude './dev/*'
tar --extract --numeric-owner --keep-directory-symlink --file {_quoted(additions)} --directory {_quoted(tree)}
mke2fs -q -t ext4 -L evenhand -d {_quoted(tree)} {_quoted(disk)} {recipe.size_mb}M
cp {_quoted(tree)}/boot/vmlinuz-* {_quoted(image / "vmlinuz")}
cp {_quoted(tree)}/boot/initrd.img-* {_quoted(image / "initrd")}
"""
    _run([*([] if is_root else ["fakeroot"]), "sh", "-c", script], what="the file system cannot be made")
    (image / "sources.list").write_text("\n".join(sources) + "\n")


def _build_modules(modules: Sequence[str]) -> list[str]:
    """Options of mmdebstrap."""
    return [f"--customize-hook={_MODULES.format(modules=' '.join(modules))}"] if modules else []


def _behind_links(path: str) -> str:
    """Under /usr where Debian has links at the top: a folder in their place would hide all programs."""
    first = path.split("/")[1]
    return f"./usr{path}" if first in ("bin", "sbin", "lib", "lib64") else f".{path}"


def _chosen(packages: Sequence[str]) -> list[str]:
    chosen = []
    for entry in packages:
        names = entry.split("|") if not entry.startswith("?") else [entry]
        for name in names[:-1]:
            if _is_offered(name):
                chosen.append(name)
                break
        else:
            if names[-1] != "-":
                chosen.append(names[-1])
    return chosen


def _is_offered(name: str) -> bool:
    asked = subprocess.run(["apt-cache", "show", name], capture_output=True, check=False)
    return asked.returncode == 0


def lacking_packages() -> list[str]:
    """Packages of programs that making an image takes and that are not here."""
    needed = NEEDS if os.geteuid() == 0 else NEEDS | NEEDS_WITHOUT_ROOT
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [package for program, package in needed.items() if shutil.which(program, path=path) is None]


def _check_programs() -> None:
    if lacking := lacking_packages():
        raise HostError(
            f"making an image of a virtual machine needs {', '.join(lacking)}",
            code="rig.program-missing",
            where="PATH",
            next_step=f"Install what is missing: sudo apt-get install {' '.join(lacking)}",
        )


@contextmanager
def _alone(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One process makes an image, the others wait for it: that takes minutes, and is said."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(path))
        except BlockingIOError:
            say(f"waiting for process {locker(path)}, which is making this image")
            stack.enter_context(lock_file_within(path, math.inf))
        except OSError as error:
            reason, remedy = why_not_lockable(path, error)
            raise HostError(
                f"an image cannot be made: {reason}",
                code="rig.image-not-writable",
                where=str(path),
                next_step=remedy,
            ) from error
        yield


def _run(command: Sequence[str], *, what: str, given: str = "") -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    try:
        ended = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise HostError(
            f"{what}: {command[0]} was not found",
            code="rig.program-missing",
            where="PATH",
            next_step=f"Install {command[0]}.",
        ) from None
    except subprocess.TimeoutExpired:
        raise HostError(
            f"{what}: {command[0]} did not end within {_BUILD_TIMEOUT_S} s",
            code="rig.image-not-made",
            where=command[0],
            next_step="Try again.",
        ) from None
    if ended.returncode != 0:
        error = HostError(
            f"{what}: {(ended.stderr.strip().splitlines() or ['no reason given'])[-1]}",
            code="rig.image-not-made",
            where=command[0],
            next_step="Correct what the lines above report, and try again; `sudo apt-get update` shows"
            " whether packages are available.",
        )
        for line in ended.stderr.splitlines()[-_STDERR_LINES:]:
            error.add_note(line)
        raise error
    return ended.stdout


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
