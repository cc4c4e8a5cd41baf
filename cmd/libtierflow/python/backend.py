"""Builds the wheel, without other packages: the Python files and libtierflow.so.

The library is TIERFLOW_LIB's file if that is set, else it is built by go from the sources around this folder.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME = "tierflow"
VERSION = re.search('__version__ = "(.*)"', HERE.joinpath(NAME, "__init__.py").read_text()).group(1)
METADATA = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nRequires-Python: >=3.9\nRequires-Dist: numpy\n"


def _library():
    """The bytes of libtierflow.so."""
    given = os.environ.get("TIERFLOW_LIB")
    if given:
        return pathlib.Path(given).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        built = pathlib.Path(folder, "libtierflow.so")
        command = ["go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-buildvcs=false", "-o", str(built), "."]
        try:
            subprocess.run(command, cwd=HERE.parent, check=True, env=dict(os.environ, CGO_ENABLED="1"))
        except FileNotFoundError:
            raise SystemExit("tierflow: go builds libtierflow.so, and it is not here; install Go, or name a built library by TIERFLOW_LIB")
        return built.read_bytes()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"{NAME}/{p.name}": p.read_bytes() for p in sorted(HERE.joinpath(NAME).iterdir()) if p.suffix in (".py", ".typed")}
    files[f"{NAME}/libtierflow.so"] = _library()
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"{NAME}-{VERSION}.dist-info"
    files[f"{info}/METADATA"] = METADATA.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tierflow\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return wheel


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("tierflow: the library's sources are not in this folder; install from a checkout")
