// Package coord lets the processes that have one store open keep to common limits, and share a few
// values. It stores no URL, and no lease depends on it.
//
//	limits := store.SharedLimits() // store is a *redis.Store
//	reply, err := limits.Heartbeat(ctx, coord.HeartbeatRequest{
//		WorkerName: "w1", ExpiresAfter: 3 * time.Second, Joining: true,
//		Limits: coord.CrawlLimits{MaxPages: 1000}, TotalWantedPages: 10,
//	})
//
// The package decides how many pages each process may visit, so that all processes together keep to
// CrawlLimits, and which of two concurrent changes of a shared value holds. Begin with
// SharedCrawlLimits.Heartbeat and SharedValues.CompareAndSet. A redis.Store returns both types; the
// daemon uses them for the limits of a crawl and for its brakes.
//
// The package starts no goroutine and has no lock. All state is on the server, in the first partition
// of the store. After the store is closed, all methods return storage.ErrClosed.
package coord
