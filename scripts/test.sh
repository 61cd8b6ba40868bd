#!/usr/bin/env bash
# Everything that must hold before a change goes in: form, lints, docs, tests, wrong protocols
# that tests must kill, licences, and that nothing is left running. Needs a Rust toolchain and gcc,
# nothing else; what it can do without is skipped by name. Ends with a line 'N passed, N failed' of
# tests and other stages together.
#
#   scripts/test.sh            all of it
#   scripts/test.sh --quick    without the long tests, those with 'soak' in their name
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

quick=false
for argument in "$@"; do
  case "$argument" in
    --quick) quick=true ;;
    *)
      sed -n '2,/^set/{/^#/p;}' "${BASH_SOURCE[0]}" | cut -c3- >&2
      echo "unknown argument '$argument'" >&2
      exit 2
      ;;
  esac
done

[ -t 1 ] || export CARGO_TERM_COLOR=never
target=${CARGO_TARGET_DIR:-$root/target}
log=$(mktemp -d "${TMPDIR:-/tmp}/cutline-test.XXXXXX")
trap 'rm -rf "$log"' EXIT

passed=0
failed=0
failures=()

# stage NAME COMMAND…: runs the command, says how long it took, and goes on whatever came of it.
# A command that counts tests leaves its counts in $log/counts as 'passed failed'.
stage() {
  local name=$1 started=$SECONDS outcome=ok good=1 bad=0
  shift
  rm -f "$log/counts"
  printf '\n== %s\n' "$name"
  # `&& status=0 || …` would switch `set -e` off inside the command; a subshell of its own does not.
  set +e
  (set -e; "$@")
  local status=$?
  set -e
  [ ! -s "$log/counts" ] || read -r good bad <"$log/counts"
  if [ "$status" -ne 0 ]; then
    outcome=FAILED
    [ -s "$log/counts" ] || good=0
    [ "$bad" -gt 0 ] || bad=1
    failures+=("$name")
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
  printf '== %s: %s, %s s\n' "$name" "$outcome" "$((SECONDS - started))"
}

skip() {
  printf '\n== %s: skipped, %s\n' "$1" "$2"
}

documentation() {
  RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
}

# The tests; counts them from the runner's own summary.
tests() {
  local status=0 leave_out=()
  if cargo nextest --version >/dev/null 2>&1; then
    ! $quick || leave_out=(-E 'not test(soak)')
    cargo nextest run --no-fail-fast ${leave_out[@]+"${leave_out[@]}"} 2>&1 |
      tee "$log/tests" || status=$?
    sed -n 's/^ *Summary .* \([0-9][0-9]*\) passed.*/\1/p' "$log/tests" >"$log/good"
    sed -n 's/^ *Summary .* \([0-9][0-9]*\) failed.*/\1/p' "$log/tests" >"$log/bad"
  else
    ! $quick || leave_out=(-- --skip soak)
    cargo test --tests --no-fail-fast ${leave_out[@]+"${leave_out[@]}"} 2>&1 |
      tee "$log/tests" || status=$?
    counts_of_cargo_test
  fi
  sum_counts
  return "$status"
}

# Examples in the documentation, which nextest does not run.
doctests() {
  local status=0
  cargo test --doc 2>&1 | tee "$log/tests" || status=$?
  counts_of_cargo_test
  sum_counts
  return "$status"
}

# Every wrong protocol is killed by the test that is named for it.
mutants() {
  local status=0
  cargo test --features mutants --test mutants -- --test-threads 1 2>&1 | tee "$log/tests" || status=$?
  counts_of_cargo_test
  sum_counts
  return "$status"
}

# Nobody gets a wrong protocol who does not ask for one; that a release build with it does not
# compile is a line in src/protocol/mutant.rs.
no_mutants_released() {
  local features
  features=$(cargo tree --edges features --invert cutline --depth 1 --prefix none)
  case "$features" in *mutants*) echo "mutants are among the default features"; return 1 ;; esac
  grep -A1 'feature = "mutants", not(debug_assertions)' src/protocol/mutant.rs |
    grep --quiet compile_error
  echo "the default features have no mutants, and a release build refuses them"
}

counts_of_cargo_test() {
  sed -n 's/^test result: .* \([0-9][0-9]*\) passed.*/\1/p' "$log/tests" >"$log/good"
  sed -n 's/^test result: .* \([0-9][0-9]*\) failed.*/\1/p' "$log/tests" >"$log/bad"
}

# Where nothing was counted (it did not compile), the stage counts as one.
sum_counts() {
  [ -s "$log/good" ] || return 0
  echo "$(awk '{n += $1} END {print n + 0}' "$log/good") $(awk '{n += $1} END {print n + 0}' "$log/bad")" \
    >"$log/counts"
}

# Two versions of these in one program do not understand each other's types.
single_versions() {
  local twice
  twice=$(cargo tree --duplicates --depth 0 --prefix none |
    awk '$1 ~ /^(tonic|prost|hyper|axum|tower)$/ {print $1, $2}' | sort -u | awk '
      {versions[$1] = versions[$1] " " $2; count[$1]++}
      END {for (name in count) if (count[name] > 1) print name ":" versions[name]}')
  [ -z "$twice" ] || { printf 'more than one version of %s\n' "$twice"; return 1; }
  echo "tonic, prost, hyper, axum and tower: at most one version of each"
}

# The programs of this checkout that are running now, as 'pid name', without those given.
running() {
  local exe program pid
  for exe in /proc/[0-9]*/exe; do
    program=$(readlink "$exe" 2>/dev/null) || continue
    program=${program% (deleted)}
    case "$program" in
      "$target"/*/cutline | "$target"/*/cutline-node | "$target"/*/cutline-collector)
        pid=${exe#/proc/}
        printf '%s %s\n' "${pid%/exe}" "${program##*/}"
        ;;
    esac
  done | sort
}

# What was running before is not ours. A process that is being reaped gets five seconds.
nothing_left() {
  local left try
  for try in 1 2 3 4 5 6; do
    left=$(running | comm -13 "$log/before" -)
    [ -n "$left" ] || { echo "no program of this checkout was left running"; return 0; }
    [ "$try" -eq 6 ] || sleep 1
  done
  printf 'left running, as pid and name:\n%s\n' "$left"
  return 1
}

[ ! -d /proc/self ] || running >"$log/before"

stage "formatting" cargo fmt --check
stage "lints" cargo clippy --locked --all-targets --quiet -- -D warnings
stage "documentation" documentation
stage "one version of each" single_versions
stage "examples and benches compile" cargo build --examples --benches --quiet
stage "tests" tests
stage "doctests" doctests
stage "mutants" mutants
stage "no mutants released" no_mutants_released
if cargo deny --version >/dev/null 2>&1; then
  stage "licences, bans, sources" cargo deny check licenses bans sources
else
  skip "licences, bans, sources" "cargo-deny is not installed"
fi
if [ -d /proc/self ]; then
  stage "nothing left running" nothing_left
else
  skip "nothing left running" "there is no /proc on this system to look into"
fi

printf '\nall of it took %s s\n' "$SECONDS"
[ "${#failures[@]}" -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
