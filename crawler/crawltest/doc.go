// Package crawltest is a web that fits in a test, and the judge of who crawls
// it.
//
// A Web is a set of Sites and a log of every request they saw. It is an
// http.RoundTripper for use inside testing/synctest bubbles: no sockets, no
// goroutines left behind, and all waiting is done by the bubble's clock. It is
// an http.Handler too, and Start puts it on a real socket, where one port
// serves all hosts and faults are real: connections are reset, bodies end too
// early, answers never come.
//
// The judge (Web.Judge) reads the log and says where a crawler broke a rule.
// It knows the rules on its own: what a site's robots.txt means is stated by
// the site's author in Go next to the text of the file, and nothing here
// parses robots.txt or computes a delay with the crawler's own code.
//
// Demo is a ready web of small sites with most of what makes crawling hard.
package crawltest
