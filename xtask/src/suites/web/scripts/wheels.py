"""Makes small packages of Python and an index of them. Usage: wheels.py FOLDER."""

import base64
import hashlib
import pathlib
import random
import sys
import zipfile

FOLDER = pathlib.Path(sys.argv[1])
# Name, version, what it requires, bytes of data in it.
PACKAGES = [
    ("suite-a", "1.0", ["suite-b>=1.0", "suite-large"], 1000),
    ("suite-b", "1.0", [], 1000),
    ("suite-b", "2.0", ["suite-c"], 1000),
    ("suite-c", "0.1", [], 0),
    ("suite-large", "1.0", ["suite-c"], 3_000_000),
]


def wheel(name, version, requires, size):
    """Writes a wheel, and returns its file."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    files = {
        f"{module}/__init__.py": b"",
        f"{module}/data.bin": random.Random(name).randbytes(size),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: suite\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(content)}\n")
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    file = FOLDER / "wheels" / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return file


(FOLDER / "wheels").mkdir(parents=True)
links = {}
for package in PACKAGES:
    file = wheel(*package)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    links.setdefault(package[0], []).append((file.name, digest))
for name, files in links.items():
    page = FOLDER / "simple" / name
    page.mkdir(parents=True)
    anchors = "".join(f'<a href="../../wheels/{file}#sha256={digest}">{file}</a>\n' for file, digest in files)
    (page / "index.html").write_text(f"<!DOCTYPE html>\n<html><body>\n{anchors}</body></html>\n")
with open(FOLDER / "hashes", "w") as hashes:
    for name, files in links.items():
        file, digest = files[-1]
        hashes.write(f"{name}=={file.split('-')[1]} --hash=sha256:{digest}\n")
