#!/usr/bin/env bash
# What action.yml runs: all scenarios, then the comparison; the worst exit status is its own.
set -u

core="$RUNNER_TEMP/scheduler-core/bin/scheduler-core"
out=(--annotations)
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || out+=(--markdown "$GITHUB_STEP_SUMMARY")
release=()
[ -z "$RELEASE" ] || release=(--release "$RELEASE")
mkdir -p "$JUNIT"
status=0 n_done=0 verdict=""

worst() {
  n_done=$((n_done + 1))
  [ "$1" -le "$status" ] || status=$1
}

files=()
while IFS= read -r path; do
  if [ -d "$path" ]; then
    while IFS= read -r -d '' file; do files+=("$file"); done \
      < <(find "$path" -type f \( -name '*.scenario.yaml' -o -name '*.scenario.yml' \) -print0 | LC_ALL=C sort -z)
  elif [ -n "$path" ]; then
    files+=("$path")
  fi
done <<< "$SCENARIOS"
for file in ${files[@]+"${files[@]}"}; do
  "$core" replay "$file" --check --junit "$JUNIT/scenario-$((n_done + 1)).xml" "${out[@]}" ${release[@]+"${release[@]}"}
  worst $?
done

if [ -n "$HEAD$APPLY" ]; then
  words=("$BASE")
  [ -z "$HEAD" ] || words+=("$HEAD")
  while IFS= read -r path; do [ -z "$path" ] || words+=(--cluster "$path"); done <<< "$CLUSTER"
  while IFS= read -r path; do [ -z "$path" ] || words+=(--apply "$path"); done <<< "$APPLY"
  said="$RUNNER_TEMP/scheduling-diff.txt"
  "$core" diff "${words[@]}" --at-most "$AT_MOST" --junit "$JUNIT/diff.xml" "${out[@]}" \
    ${release[@]+"${release[@]}"} > "$said"
  worst $?
  cat "$said"
  verdict=$(grep -v '^::' "$said" | head -n 1)
fi

if [ "$n_done" -eq 0 ]; then
  echo "::error title=Scheduling::there is nothing to check: no scenario was found, and neither head nor apply is given"
  status=2
fi
case $status in 0) result=holds ;; 1) result=fails ;; *) result=unusable ;; esac
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'result=%s\nverdict=%s\n' "$result" "$verdict" >> "$GITHUB_OUTPUT"
fi
exit "$status"
