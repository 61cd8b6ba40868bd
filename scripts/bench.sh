#!/usr/bin/env bash
# Measures cutline beside raw TCP and plain tonic, as docs/performance.md describes, and prints a
# table with what was aimed at and what was reached. Builds first. Takes some ten minutes, most of
# them in building; needs Linux, a Rust toolchain and gcc, no root and, for figures that mean
# something, a machine that does nothing else.
#
#   scripts/bench.sh                  all of it
#   scripts/bench.sh --quick          a minute, to see that it works; its figures say little
#   scripts/bench.sh --json FILE      writes everything that was measured to FILE, too
#   scripts/bench.sh --only CASE      one case a few times over, for whoever makes it faster:
#                                     cutline-32, raw-256, …, trip, mesh, marker, latency, price, kill
#
# Exit status: 0 measured, 1 the run is void (a baseline is not what it should be), 2 it failed.
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Whoever runs this may have settings of their own.
unset ${!CUTLINE_@}

arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) arguments+=("$1") ;;
    --json | --only)
      [ $# -ge 2 ] || { echo "$1: of what?" >&2; exit 2; }
      value=$2
      [ "$1" = --only ] || case "$2" in /*) ;; *) value=$here/$2 ;; esac
      arguments+=("$1" "$value")
      shift
      ;;
    *)
      sed -n '2,/^set/{/^#/p;}' "scripts/bench.sh" | cut -c3- >&2
      echo "unknown argument '$1'" >&2
      exit 2
      ;;
  esac
  shift
done

# Where cargo has put the programs, it says itself.
built=$(cargo bench --locked --no-run --bench baseline --bench compare 2>&1 | tee /dev/stderr) || exit 2
program() { sed -n "s|^ *Executable benches/$1/main.rs (\(.*\))\$|\1|p" <<<"$built"; }
compare=$(program compare)
baseline=$(program baseline)
[ -x "$compare" ] && [ -x "$baseline" ] || { echo "cannot find what cargo has built" >&2; exit 2; }

"$compare" --baseline "$baseline" ${arguments[@]+"${arguments[@]}"}
