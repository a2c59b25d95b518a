#!/bin/sh
# Builds postgresql-N-sooner-locks_VERSION_ARCH.deb for each installed major, or those named.
# usage: package.sh [MAJOR]...      The packages are put into ./target.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$here/sooner_locks.control")-1
architecture=$(dpkg --print-architecture)
mkdir -p "$here/target"

package() {
    major=$1
    config=/usr/lib/postgresql/$major/bin/pg_config
    name=postgresql-$major-sooner-locks
    work=$(mktemp -d)
    root=$work/root
    # A copy, so that builds of several majors do not meet.
    mkdir "$work/source"
    cp -r "$here/Makefile" "$here/sooner_locks.control" "$here/src" "$here/sql" "$work/source"
    find "$work/source" -name '*.o' -delete
    make -s -C "$work/source" PG_CONFIG="$config"
    make -s -C "$work/source" PG_CONFIG="$config" DESTDIR="$root" install >/dev/null
    strip --strip-unneeded "$root/usr/lib/postgresql/$major/lib/sooner_locks.so"

    documents=$root/usr/share/doc/$name
    mkdir -p "$documents" "$root/DEBIAN"
    cp "$here/README.md" "$here/src/sooner_locks_map.h" "$documents"
    cat > "$documents/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: sooner_locks

Files: *
Copyright: 2026 The Sooner authors
License: MIT or Apache-2.0
END
    cat > "$root/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $architecture
Maintainer: the authors of Sooner <sooner@localhost>
Depends: postgresql-$major, libc6
Section: database
Priority: optional
Description: wait queues of locks by priority, for PostgreSQL $major
 Those who matter more go first in the wait queues of PostgreSQL's heavyweight
 locks, on a server that is not patched. A background worker moves them forward
 where no deadlock can come of it.
 .
 Add sooner_locks to shared_preload_libraries and restart the server.
END
    (cd "$root" && find usr -type f -exec md5sum {} +) > "$root/DEBIAN/md5sums"
    chmod -R u=rwX,go=rX "$root"
    dpkg-deb --root-owner-group --build "$root" \
        "$here/target/${name}_${version}_${architecture}.deb"
    rm -rf "$work"
}

if [ $# -eq 0 ]; then
    for config in /usr/lib/postgresql/*/bin/pg_config; do
        [ -e "$config" ] || { echo "no PostgreSQL in /usr/lib/postgresql" >&2; exit 1; }
        major=${config#/usr/lib/postgresql/}
        set -- "$@" "${major%%/*}"
    done
fi
for major in "$@"; do
    package "$major"
done
