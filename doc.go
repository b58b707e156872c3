// Package decorum defines the types that all packages of the crawler share: URL, Origin,
// Response, RawExchange, Decision and Error.
//
// The package decides one thing: whether two spellings of a URL name the same page. ParseURL and
// URL.Resolve return the canonical form, and no other function makes a URL from text, so a crawl
// can compare URLs with == and use them as map keys:
//
//	page, err := decorum.ParseURL("HTTP://Example.com:80/a/../b")
//	if errors.Is(err, decorum.Invalid) {
//		return err
//	}
//	link, err := page.Resolve("?page=2") // http://example.com/b?page=2
//	robots := link.Origin().RobotsURL()  // http://example.com/robots.txt
//
// Other packages decide whether a URL may be visited; they report it as a Decision, whose comment
// lists the checks in their order. A failure is an Error, whose ErrorKind errors.Is finds.
//
// Begin reading at ParseURL in parse.go, which lists the rules of the canonical form. It tries
// resolveFast (parse_fast.go), which recognises links that need no rewriting, and then resolveFull
// (parse_full.go), which implements the WHATWG URL standard. The host is in host.go.
//
// The package does no I/O, starts no goroutine, holds no lock and imports no other package of the
// module. All its values are safe for concurrent reading.
package decorum
