// Package frontier knows which URLs are waiting and which is next.
//
// It brings URLs in (Discover: clean, scope, seen set), hands them out when
// their host is due (Next), and takes back what became of them (Ack). It never
// fetches, never judges robots.txt and holds no state of its own: all of it is
// in a storage.Store. No worker sleeps for politeness: those that find nothing
// due wait in Next until something is.
package frontier
