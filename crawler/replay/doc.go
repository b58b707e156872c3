// Package replay takes a recorded crawl, a ledger and WARC files, through the crawler again, and
// reports each decision that the crawler would now make differently.
//
// The ledger sets the clock. When it shows a request, the package asks the crawler for its next
// request to that host at that time; when it shows the answer, the crawler gets the archived
// answer. Nothing has to wait, and all decisions come from the crawler's own code: scope, seen
// set, order, robots.txt, pace. The package compares them with the ledger: the order at each host,
// the verdicts and the lines that they rest on, and that the host was due.
//
//	archive, err := replay.OpenArchive("archive")
//	replayer, err := replay.New(records, archive) // records as from ledger.Records
//	replayer.OnDifference = func(d replay.Difference) { fmt.Println(d) }
//	// Build c, a *crawler.Crawler, with replayer.Store(), replayer.Now as its clock, and
//	// replayer as the transport of its fetcher.
//	report, err := replayer.Replay(ctx, c, addSeeds)
//
// Begin reading at LedgerReplayer.Replay; compare.go holds the comparisons.
//
// The crawler runs each visit in a goroutine, but only one of them proceeds at a time: each stops
// when it has its ticket, and continues when the ledger shows its answer. Replay ends all of them
// before it returns, unless it returns an error. Only the clock is shared without this order; it is
// atomic. There are no locks.
//
// The package makes no request and changes no file. Its memory grows with the URLs of the crawl.
package replay
