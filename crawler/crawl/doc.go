// Package crawl assembles a polite crawl from its parts: the state in a directory, robots.txt, the
// pace of hosts, the frontier and the fetcher. A program gives its name, a contact and seeds, and gets
// each page:
//
//	err := crawl.Run(ctx, crawl.Config{
//		Agent: "examplebot/1.0", Contact: "https://example.org/bot", StateDir: "example-crawl",
//		Seeds:  []string{"https://example.com/"},
//		OnPage: func(_ context.Context, v *crawler.Visit) error { ... },
//	})
//
// Begin with Config and Open. The zero value of every other field of Config is the default of its
// package. collyfetch.Wrap uses Open to build the crawl around a colly program.
//
// A program that needs more, such as an archive or other protocols than http and https, assembles a
// crawler.Crawler itself, as examples/mirror does.
//
// The package starts no goroutine. Crawl.mu, the only lock, is held while OnPage runs.
package crawl
