// Package replay takes a crawl that was recorded, in a ledger and WARC files, through
// the crawler again, and says where it would decide otherwise.
//
// The clock is the ledger's: when a request was sent, the crawler is asked for what
// it would ask of that host at that moment, and when its answer had come, the answer
// is handed over as it was archived. So there is nothing to wait for, and all that
// decides is the crawler's own code: scope, seen set, order, robots.txt, pace. What it
// decides is compared with what the ledger says: the order of each host, verdicts and
// the lines that they rest on, and that the host was due.
//
// New makes a LedgerReplayer of the records of a ledger (ledger.Records) and the answers of an
// archive (OpenArchive). A Crawler is put together around the LedgerReplayer's Store, its clock
// Now, and the LedgerReplayer itself for the transport of the fetcher; Replay takes it through the
// records, and LedgerReplayer.OnDifference is told of each difference.
//
// It sends nothing and changes nothing. Memory grows with the URLs of the crawl.
package replay
