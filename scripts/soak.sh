#!/usr/bin/env bash
# Kills, stops and restores a bank of eight nodes at random for some minutes, while snapshots are
# taken three times a second; every one of them must hold, and no money may be lost. Or takes many
# snapshots while nobody is killed, and looks that memory does not grow. Prints the counts.
#
#   scripts/soak.sh [--minutes N] [--seed S]    two minutes, unless it says otherwise
#   scripts/soak.sh --flat [N]                  N snapshots, 10000 unless it says otherwise
#
# Exit status: 0 all holds, 1 something does not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

test=soak::soak
while [ $# -gt 0 ]; do
  case "$1 ${2:-}" in
    --minutes\ [0-9.]*) export CUTLINE_SOAK_MINUTES=$2 && shift ;;
    --seed\ [0-9]*) export CUTLINE_SOAK_SEED=$2 && shift ;;
    --flat\ [0-9]*) test=flat::soak_flat && export CUTLINE_FLAT_SNAPSHOTS=$2 && shift ;;
    --flat\ *) test=flat::soak_flat ;;
    *)
      sed -n '2,/^set/{/^#/p;}' "${BASH_SOURCE[0]}" | cut -c3- >&2
      echo "unknown argument '$1'" >&2
      exit 2
      ;;
  esac
  shift
done
cargo test --quiet --test cluster -- --exact --nocapture "$test" || exit 1
