# Functions of .ci/quick and .ci/proofs, which source this file.

# prove PACKAGE TESTS [FLAG...] runs the tests whose names match one of TESTS,
# patterns that are separated by |. It fails if a pattern matches no test: a test
# that was renamed must not leave its proof unnoticed.
prove() {
  package=$1 tests=$2
  shift 2
  known=$(go test -list . "$package")
  for pattern in $(echo "$tests" | tr '|' ' '); do
    echo "$known" | grep -Eq "^$pattern" || { echo "no test of $package matches $pattern"; return 1; }
  done
  echo "== $package $tests $*"
  go test "$package" -count=1 -timeout 15m -run "^($tests)" "$@"
}

# fuzz_all TIME runs each fuzz target of the module for TIME.
fuzz_all() {
  targets=$(go test -list '^Fuzz' ./... | awk '
    /^Fuzz/ { names[n++] = $1 }
    /^ok/   { for (i = 0; i < n; i++) print $2 ":" names[i]; n = 0 }')
  test -n "$targets" || { echo "there are no fuzz targets"; return 1; }
  for target in $targets; do
    echo "== ${target%%:*} ${target##*:}"
    go test "${target%%:*}" -run '^$' -fuzz "^${target##*:}\$" -fuzztime "$1" -fuzzminimizetime 10x >/dev/null ||
      { echo "fuzzing found something: $target"; return 1; }
  done
}
