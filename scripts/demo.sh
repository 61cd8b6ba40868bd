#!/usr/bin/env bash
# Shows in about twenty seconds what cutline does: four branches of a bank pay one another, a
# snapshot is taken each second, one branch is killed, everything goes back to a snapshot, and the
# books balance. Builds first. Needs Linux, a Rust toolchain and gcc, nothing else; leaves no
# process and no file behind but the build.
#
# Exit status: 0 all as it should be, 1 something is not, 2 it could not be tried.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
# Whoever runs this may have settings of their own.
unset ${!CUTLINE_@}

# How long to wait for what should take a second or two: a busy machine is no failure.
PATIENCE_S=60
# What the bank has: four times 1000.
MONEY=4000

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
heading() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
tell() { sed 's/^/  /'; }

# run COMMAND…: says what it runs, runs it, and fails as it does.
run() {
  printf '\n  %s$ cutline %s%s\n' "$bold" "$*" "$plain"
  cutline "$@" 2>&1 | tell
}

give_up() {
  [ ! -f bank.cutline/logs/supervisor+.log ] || tail -n 20 bank.cutline/logs/supervisor+.log >&2
  printf '\nThe demo ends here: %s.\n' "$2" >&2
  exit "$1"
}

# wait_for WHAT COMMAND…: until the command says yes.
wait_for() {
  local what=$1 deadline=$((SECONDS + PATIENCE_S))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || give_up 1 "$what: not within $PATIENCE_S s"
    sleep 0.2
  done
}

# The answers in JSON have one field a line; what is two blanks in is the answer's own.
status_field() { cutline status --format json 2>/dev/null | sed -n "s/^  \"$1\": \"\\(.*\\)\",*\$/\\1/p"; }
complete() { cutline list --format json | grep -c '"state": "complete"' || true; }
has_complete() { [ "$(complete)" -ge "$1" ]; }
is_restored() { [ "$(status_field phase)" = running ] && [ "$(status_field generation)" != g1 ]; }

# The complete snapshot with the most messages on their way: it makes the best picture.
fullest() {
  cutline list --format json | awk -F'"' '
    /"id":/ { id = $4 }
    /"state":/ { state = $4 }
    /"messages":/ {
      split($3, number, /[ ,:]+/)
      if (state == "complete" && number[2] + 0 >= most + 0) { most = number[2]; best = id }
    }
    END { print best }'
}

# One snapshot as a picture: a line for each branch, and the messages that cross the cut.
picture() {
  cutline show "$1" --format json | awk -v id="$1" '
    function text(line) { sub(/^[^:]*: "/, "", line); sub(/",?$/, "", line); return line }
    function number(line) { gsub(/[^0-9]/, "", line); return line + 0 }
    /"process":/ {
      if (!process) printf "  %-6s         before %s after\n", "", id
      process = text($0)
    }
    /"in_state":/ { state = 1 }
    /"in_channels": \{/ { state = 0 }
    /"money":/ && state {
      printf "  %-6s ═══════════════╪─ ─ ─ ─ ─ ─ ─ ─    %5d in its till\n", process, number($0)
    }
    /"channel":/ { channel = text($0) }
    /"sent":/ { sent = number($0) }
    /"handled":/ { handled = number($0) }
    /"receiver_share":/ && number($0) > 0 {
      if (!crossing++) printf "  %-6s                │\n", ""
      split(channel, end, "→")
      last = sent > handled + 1 ? "-" sent : ""
      printf "  %-6s ───────────────┼───────────────► %-6s  transfer no. %s%s\n", \
        end[1], end[2], handled + 1, last
    }
    /"in_states":/ { states = number($0) }
    /"in_channels": [0-9]/ { channels = number($0) }
    END {
      if (!crossing) printf "  %-6s                │      (nothing was on its way just then)\n", ""
      printf "\n  in the tills %d, on the way %d: together %d\n", states, channels, states + channels
    }'
}

# books: reads what `verify --all --format json` says on its standard input, and answers how many
# snapshots there are in generation 1, in later ones, and how many do not hold just $MONEY.
books() {
  awk -v money="$MONEY" '
    /^      "generation":/ { if ($2 ~ /"g1"/) before++; else after++ }
    /"in_states":/ { gsub(/[^0-9-]/, ""); states = $0 }
    /"in_channels":/ { gsub(/[^0-9-]/, ""); channels = $0 }
    /"expected":/ { gsub(/[^0-9-]/, ""); judged++; if (states + channels != money || $0 != money) wrong++ }
    END { print before + 0, after + 0, wrong + before + after - judged }'
}

work=
leave() {
  local status=$?
  # Whoever is impatient twice must not leave anything behind either.
  trap '' INT TERM HUP
  trap - EXIT
  cd /
  if [ -n "$work" ]; then
    if [ -d "$work/bank.cutline" ] && ! cutline down --dir "$work/bank.cutline" >"$work/down" 2>&1; then
      cat "$work/down" >&2
      [ "$status" -ne 0 ] || status=1
    fi
    rm -rf "$work"
  fi
  exit "$status"
}
trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

command -v cargo >/dev/null || give_up 2 "there is no cargo: install Rust (https://rustup.rs)"
heading "Building cutline (a minute or a few the first time, a moment from then on)"
# Not optimised at all: it is built in a third of the time, and a bank of four is no burden.
cargo build --locked --bins --manifest-path "$root/Cargo.toml" --target-dir "$target" \
  --config 'profile.dev.package."*".opt-level=0' ||
  give_up 2 "cutline could not be built"
PATH=$target/debug:$PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/cutline-demo.XXXXXX")
cd "$work"
started=$SECONDS

cat >bank.toml <<'TOML'
processes = ["north", "east", "south", "west"]
topology = "mesh"        # each is connected with every other, one TCP connection each way

[application]
name = "bank"
balance = 1000           # what each has in its till at the start
amount_max = 20          # the most that one transfer moves
every_ms = 1             # a transfer each millisecond, from each

[snapshots]
interval = "1s"

[store]
retain = 100             # keep them all, to look at them in the end
TOML

heading "1. Four branches of a bank"
tell <<'TEXT'
north, east, south and west are four programs, each with 1000 in its till: 4000 together.
Every millisecond each of them sends a random amount to another one.
TEXT
run up bank.toml --detach || give_up 2 "the bank could not be started"
run status
sleep 4

heading "2. How much money is there?"
tell <<'TEXT'
Whoever walks from branch to branch and adds up counts a transfer twice, or misses it, as it
was on its way. And nobody can shout "stop" to all at the same moment.

So north writes down its till, and behind the last transfer it has sent on each channel it
sends a marker. A branch that meets its first marker does the same. What a branch receives on
a channel after it wrote down its till, and before that channel's marker, was on its way: it
writes that down too. Nobody stops working. cutline does this once a second:
TEXT
wait_for "four snapshots" has_complete 4
run list

chosen=$(fullest)
heading "3. One of them as a picture: $chosen"
echo
picture "$chosen"
tell <<TEXT

The line is not one moment on any clock: each branch wrote down its till when the marker came.
It is a "consistent cut" nevertheless: no transfer has been received left of the line that was
sent right of it. Those sent left and received right were on their way, and belong to the books.
TEXT
sleep 7

heading "4. A branch dies"
tell <<'TEXT'
SIGKILL: east cannot save anything, nor tell anybody. Its till is gone, and all that had come in.
TEXT
run kill east || give_up 1 "east could not be killed"
wait_for "everyone runs again" is_restored
run status
tell <<TEXT

east was started again at once, but knows nothing. The others cannot simply go on: they have
received transfers that the new east never sent. So all four are taken back to the newest
snapshot, $(status_field restored), with the transfers that were on their way in it, and go on from there. That is
generation $(status_field generation). Whatever came after that cut has never happened, for all four alike.
TEXT
before=$(complete)
wait_for "three snapshots more" has_complete $((before + 3))
sleep 1

heading "5. The books"
run down || give_up 1 "the bank could not be ended"
tell <<'TEXT'

Nothing runs any more. Each snapshot is read back from disk and judged:
  complete       every branch and every channel is in it
  intact         every file is as it was written, by its checksum
  non-negative   nobody has received what was not sent
  exact          in each channel is just what was sent and not received, each once
  conserved      tills and channels together hold what there was at the start
TEXT
verdicts=0
run verify --all || verdicts=$?
[ "$verdicts" -le 1 ] || give_up 2 "the snapshots could not be read"
read -r before after wrong < <(cutline verify --all --format json | books)

echo
if [ "$verdicts" -ne 0 ]; then
  give_up 1 "a verdict does not hold"
elif [ "$wrong" -ne 0 ] || [ "$before" -eq 0 ] || [ "$after" -eq 0 ]; then
  give_up 1 "$before snapshots before the kill, $after after it, $wrong without just $MONEY"
fi
printf '%sThe books balance: %s in each of %s snapshots, %s before the kill and %s after it (%s s).%s\n' \
  "$bold" "$MONEY" $((before + after)) "$before" "$after" $((SECONDS - started)) "$plain"
