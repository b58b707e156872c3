// Package coord is how processes that have one store open keep to limits together, and
// tell each other a few values. It is not storage: nothing of a URL's way depends on it.
//
// It decides how many pages each process may visit, so that all together keep to
// CrawlLimits, and what a shared value is after two processes have changed it. Begin with
// SharedCrawlLimits.Heartbeat and SharedValues.CompareAndSet. A redis.Store returns both; the
// daemon calls them, for the limits of a crawl and for its brakes.
//
// It starts no goroutine and has no lock: all of its state is on the server, in the first
// partition of the store. After the store is closed its methods return storage.ErrClosed.
package coord
