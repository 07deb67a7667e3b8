#!/usr/bin/env bash
# Every property of the kernels (tests/kernels/property.hpp) over many random cases, for each function and each
# instruction set of this machine: all give the bytes of the definition.
#   tools/kernel_sweep.sh [--cases 100000] [--seed 1] [--filter GTEST_FILTER] [--pin] [-- COMMAND...]
# COMMAND is the test program, by default a copy of build/release/bin/kernels_test, so that builds may go on meanwhile.
# --pin keeps each process on one processor. Counts: build/sweep/cases.csv, "function,isa,cases"; a failure prints the
# seed and the case that repeat it. On two processors 100000 cases take ten minutes, 2000 a quarter of one.
set -euo pipefail
cd "$(dirname "$0")/.."
cases=100000 seed=1 filter='*' pin=
while [ $# -gt 0 ]; do
  case "$1" in
    --cases) cases=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --filter) filter=$2; shift 2 ;;
    --pin) pin=1; shift ;;
    --) shift; break ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
mkdir -p build/sweep
command=("$@")
if [ ${#command[@]} -eq 0 ]; then
  cp build/release/bin/kernels_test build/sweep/
  command=(build/sweep/kernels_test)
fi

csv=$PWD/build/sweep/cases.csv
rm -f "$csv"
shards=$(nproc)
pids=()
for ((i = 0; i < shards; ++i)); do
  OPENRKNN_CASES=$cases OPENRKNN_SEED=$seed OPENRKNN_CASES_CSV=$csv GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i \
    ${pin:+taskset -c "$i"} "${command[@]}" --gtest_filter="$filter" >"build/sweep/run$i.log" 2>&1 &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
grep -hE "^\[  FAILED|Failure|repeat this case|crashed in" build/sweep/run*.log || true
[ -s "$csv" ] || { echo "no property ran: see build/sweep/run*.log" >&2; exit 1; }
# A few properties of large shapes stop earlier and say so.
awk -F, -v cases="$cases" '
  {n[$2] += 1; total[$2] += $NF; if (!($2 in least) || $NF < least[$2]) {least[$2] = $NF; which[$2] = $1}}
  END {for (isa in n) printf "%-22s %3d properties, %9d cases, at least %d (%s)\n", isa, n[isa], total[isa], least[isa], which[isa]}
' "$csv" | sort
echo "seed $seed: $((SECONDS)) s"
exit $status
