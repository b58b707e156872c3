#!/bin/sh
# All that CI checks and needs nothing but Go. Run it before you send a change.
set -eu
cd "$(dirname "$0")"
test -z "$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
go vet ./...
go tool -modfile=tools/go.mod staticcheck ./...
# Without what runs in processes of its own, and where there is a goroutine at all.
go test -race -short ./politeness ./robots ./storage/... ./frontier ./crawler ./crawler/collyfetch ./crawler/ftpfetch ./crawler/daemon ./crawler/daemon/api ./crawler/daemon/metrics
for target in .:FuzzResolve .:FuzzNameFast ./robots:FuzzParse ./robots:FuzzMatch ./robots:FuzzOSS ./robots:FuzzClean \
  ./robots:FuzzHost ./robots:FuzzGateHeaders ./crawler:FuzzHostMemo ./crawler/extract:FuzzScan ./crawler/extract:FuzzSameAsDOM \
  ./crawler/extract:FuzzScanHeader ./frontier/sitemap:FuzzRead ./storage/warc:FuzzReader ./storage/warc:FuzzMessage; do
  go test "${target%%:*}" -run '^$' -fuzz "^${target##*:}\$" -fuzztime 1s -fuzzminimizetime 10x >/dev/null ||
    { echo "fuzzing found something: $target"; exit 1; }
done
go run ./cmd/decorum demo
