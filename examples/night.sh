#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A night's measurement, for a timer or a CI job: a campaign is measured into FOLDER/runs and compared with FOLDER/baseline.evenhand, the
# trend of all runs is drawn, and old runs are deleted. The first complete run becomes the baseline.
#
#   night.sh CAMPAIGN FOLDER [OPTION OF evenhand run...]
#
# Exit codes: 0 all is well; 1 a point is worse than the limit, or has no number; all others are those of evenhand: 2 a file or an option is
# wrong, 3 the machine is not ready, 4 a bug, 130 and 143 interrupted. docs/how-to/measure-every-night.md says more.
set -u
[ $# -ge 2 ] || { echo "usage: night.sh CAMPAIGN FOLDER [OPTION OF evenhand run...]" >&2; exit 2; }
campaign=$1 folder=$2
shift 2
: "${EVENHAND:=evenhand}"       # the program
: "${FAIL_BELOW:=0.97}"         # a point below this share of the baseline is a regression
: "${KEEP_DAYS:=400}" "${KEEP_SIZE:=20GB}"

mkdir -p "$folder/runs" || exit 3
run=$folder/runs/$(date -u +%Y-%m-%d-%H%M%S).evenhand
worst=0
# Keeps the highest exit code of the steps after which the script goes on.
note() { [ "$1" -le "$worst" ] || worst=$1; }

# A signal to this script, for example from systemd, ends the campaign in order: it gives a lab back, and can be resumed.
"$EVENHAND" run "$campaign" "$@" --run "$run" &
measuring=$!
trap 'kill -TERM "$measuring"' TERM INT
wait "$measuring"
ended=$?
while kill -0 "$measuring" 2>/dev/null; do wait "$measuring"; ended=$?; done # a signal ends the first wait
trap - TERM INT
note "$ended"
[ "$worst" -le 1 ] || exit "$worst"

if [ -e "$folder/baseline.evenhand" ]; then
    "$EVENHAND" compare "$folder/baseline.evenhand" "$run" --fail-below "$FAIL_BELOW" --html "$folder/comparison.html" || note $?
elif [ "$worst" -eq 0 ]; then
    cp "$run" "$folder/baseline.evenhand" || note 3
    echo "The first run is the baseline: $folder/baseline.evenhand"
fi
"$EVENHAND" trend "$folder/runs" --anyway --html "$folder/trend.html" || note $?
"$EVENHAND" prune "$folder/runs" --days "$KEEP_DAYS" --size "$KEEP_SIZE" || note $?
exit "$worst"
