module github.com/decorum-crawler/decorum/tools/powercut

go 1.26.0

require (
	github.com/decorum-crawler/decorum v0.0.0
	github.com/hanwen/go-fuse/v2 v2.12.1
)

require (
	github.com/aymanbagabas/go-udiff v0.4.1 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/decorum-crawler/decorum => ../../
