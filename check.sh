#!/bin/sh
# All that CI checks and needs nothing but Go. Run it before you send a change.
set -eu
cd "$(dirname "$0")"
test -z "$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
go vet ./...
go tool -modfile=tools/go.mod staticcheck ./...
go test -race -short ./... # without what runs in processes of its own
for target in .:FuzzResolve .:FuzzNameFast ./robots:FuzzParse ./robots:FuzzMatch ./robots:FuzzOSS ./robots:FuzzClean \
  ./robots:FuzzHost ./robots:FuzzGateHeaders ./crawler:FuzzHostMemo ./crawler/extract:FuzzScan ./crawler/extract:FuzzSameAsDOM \
  ./crawler/extract:FuzzScanHeader ./frontier/sitemap:FuzzRead ./storage/warc:FuzzReader ./storage/warc:FuzzMessage; do
  go test "${target%%:*}" -run '^$' -fuzz "^${target##*:}\$" -fuzztime 3s -fuzzminimizetime 10x >/dev/null ||
    { echo "fuzzing found something: $target"; exit 1; }
done
go run ./cmd/decorum demo
