#!/usr/bin/env bash
# test_install.sh BUILD_DIRECTORY: installs Zeus into a temporary prefix and builds a small outside
# project against it, with find_package and with pkg-config, in C++ and in C; then every public header
# alone, and the examples. CC, CFLAGS, CXX and CXXFLAGS are those of the build.
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

echo "== public headers"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name zeus.pc)")
read -ra flags <<<"$(pkg-config --cflags zeus) ${CXXFLAGS:-}"
mapfile -t public < <(sed -n 's/^  \(zeus\/.*\.h\))*$/\1/p' "$here/../../cmake/public_headers.cmake")
((${#public[@]} > 30))  # Else the list was not understood.
installed=$(find "$prefix/include/zeus" -name '*.h' | wc -l)
echo "${#public[@]} public headers, $installed installed"
if ((installed > 120)); then
  echo "more than 120 headers are installed: public ones include too much" >&2
  exit 1
fi
cd "$scratch"  # So that nothing of the source tree is found.
printf '%s\n' "${public[@]}" | while read -r header; do
  # The header is of an optional layer that this machine has not built.
  [[ -f $prefix/include/$header || $header != zeus/mpi/* ]] || continue
  printf '#include "%s"\nint main() {}\n' "$header" >"$(tr / _ <<<"$header").cc"
done
find . -maxdepth 1 -name 'zeus_*.cc' -print0 |
  xargs -0 -n 4 -P 2 "${CXX:-c++}" -fsyntax-only -Wall -Wextra -Werror "${flags[@]}"

echo "== examples"
cmake -S "$here/examples" -B "$scratch/examples" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DEXAMPLES="$here/../../examples" >"$scratch/cmake.log" || { cat "$scratch/cmake.log" && exit 1; }
cmake --build "$scratch/examples" -j 2
