// Package bench measures decorum beside others, in one run, so that ratios
// hold on any machine:
//
//	go test -bench . -benchtime 2000x ./bench
//
// Pages are 20 KiB with 50 links, served from the same process on loopback;
// both crawlers fetch one page at a time without a pause.
package bench
