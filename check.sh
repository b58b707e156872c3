#!/bin/sh
# All that CI checks and needs nothing but Go. Run it before you send a change.
set -eu
cd "$(dirname "$0")"
test -z "$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
go vet ./...
go tool -modfile=tools/go.mod staticcheck ./...
# -short leaves out what runs in processes of its own: there the race detector sees nothing.
go test -race -short ./...
go run ./cmd/decorum demo
