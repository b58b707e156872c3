// Package bench compares decorum with colly and with a robots.txt parser, in one run, so that the
// ratios apply to any machine:
//
//	go test -bench . -benchtime 2000x ./bench
//	go test -bench Robots ./bench
//
// BenchmarkCrawl (crawl_test.go) visits pages of 20 KiB with 50 links, which the same process
// serves on loopback. Each crawler fetches one page at a time without a pause: the library with two
// stores, the command with all of its files on disk, and colly. BenchmarkRobots… (robots_test.go)
// parse and evaluate 60 generated robots.txt files of 0.5 to 80 KB.
//
// The folders below have further measurements: extract of link extraction, frontier of the frontier
// with its store, rediscluster of the store in Redis Cluster, crawl of whole crawls with the server
// in another process, hostile of a daemon against sites that attack it, soak of a daemon over half
// an hour, to show whether it could run for months, and simulate of crawls by more processes and
// hosts than one machine holds.
package bench
