// Package bench measures decorum beside others, in one run, so that ratios
// hold on any machine:
//
//	go test -bench . -benchtime 2000x ./bench
//
//	go test -bench Robots ./bench
//
// The frontier and its store are measured by a program of their own, bench/frontier,
// or bench/rediscluster where the state is in Redis Cluster, and whole crawls, with the
// server in another process, by bench/crawl; bench/soak runs a daemon for half an hour,
// and asks whether it could go on for months; bench/simulate plans a crawl of more
// processes and hosts than fit a machine.
//
// Pages are 20 KiB with 50 links, served from the same process on loopback;
// both crawlers fetch one page at a time without a pause, and so does the command
// with all that it keeps on the disk. Files of robots.txt are
// 60 of 0.5 to 80 KB, made up as real ones look, read and judged by both in turn.
package bench
