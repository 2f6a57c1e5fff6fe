#!/usr/bin/env bash
# test_install.sh BUILD_DIRECTORY: installs Zeus into a temporary prefix and builds a small outside
# project against it, with find_package and with pkg-config, in C++ and in C. CC, CFLAGS, CXX and CXXFLAGS are those of
# the build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

cmake --install "$build" --prefix "$prefix" >"$scratch/install.log"
if find "$prefix" -path '*testing*' | grep .; then
  echo "test code was installed" >&2
  exit 1
fi

echo "== find_package"
cmake -S "$here" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/cmake.log" ||
  { cat "$scratch/cmake.log" && exit 1; }
cmake --build "$scratch/build"
"$scratch/build/with_static"
"$scratch/build/with_shared"
if cmake -S "$here" -B "$scratch/wrong" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_PROJECT_INCLUDE="$here/wrong_component.cmake" >"$scratch/wrong.log" 2>&1; then
  echo "a component that does not exist was found" >&2
  exit 1
fi
grep -q no_such_component "$scratch/wrong.log"

echo "== pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name zeus.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs zeus) ${CXXFLAGS:-}"
"${CXX:-c++}" "$here/main.cc" -o "$scratch/with_pkg_config" "${flags[@]}"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir zeus) "$scratch/with_pkg_config"

echo "== pkg-config, C"
read -ra flags <<<"$(pkg-config --cflags --libs zeus-c) ${CFLAGS:-}"
"${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror "$here/main.c" -o "$scratch/in_c" "${flags[@]}"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir zeus-c) "$scratch/in_c"
