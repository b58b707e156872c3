#!/bin/sh
# All that CI checks and needs nothing but Go. Run it before you send a change.
set -eu
cd "$(dirname "$0")"
test -z "$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
go vet ./...
go tool -modfile=tools/go.mod staticcheck ./...
# Without what runs in processes of its own, and where there is a goroutine at all.
go test -race -short ./internal/connlimit ./internal/memlimit ./politeness ./robots/... ./storage/... ./frontier ./crawler ./crawler/bodymem ./crawler/collyfetch ./crawler/httpfetch ./crawler/internal/... ./crawler/ftpfetch ./crawler/daemon/...
go run ./cmd/decorum demo
