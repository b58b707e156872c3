// Package sitemap reads sitemaps: lists of URLs that a site offers to crawlers.
//
// It reads the XML and the plain text form of sitemaps.org, sitemap indexes, and the items of RSS
// 0.9 to 2.0, Atom and JSON feeds. Files may be compressed with gzip, and encoded in UTF-8, UTF-16
// or the encoding that the XML declares. Read calls a function for each entry of one file:
//
//	err := sitemap.Read(body, url, sitemap.Options{}, func(e sitemap.Entry) error {
//		fmt.Println(e.URL)
//		return nil
//	})
//
// An error of the function stops Read. The entries of an index are further sitemaps, which the
// caller fetches and reads. Begin reading with Read in sitemap.go and readDocument in
// xml_document.go. Entry documents what becomes of each field, Options the limits and the locations
// that a file may list.
//
// # Leniency
//
// Many published sitemaps have small errors. The content decides, and everything that can be
// understood is used:
//
//   - The first bytes and the root element decide the format; the file name, the media type and the
//     XML namespace do not count.
//   - A bare "&" stands for itself. The five predefined entities of XML and numeric references are
//     decoded; text with another reference is not used.
//   - Relative locations are resolved against the sitemap's URL, or against the xml:base of a feed.
//   - If a file is truncated or malformed, the entries before that place are used, and the error
//     gives the place.
//   - Unusable fields and entries are skipped, and reported to Options.OnEntryError.
//
// Entries are pages and further sitemaps. The image, video, news and other extensions are skipped,
// and so are the alternates of xhtml:link: each language version must have an entry of its own, so
// the alternates only repeat other entries.
//
// # What it never does
//
// The parser fetches nothing, starts no goroutine and has no lock. It holds at most one entry in
// memory, whatever the length of the file. It reads no external entity and expands no declared one.
// The size, the ratio of decompression, the number of entries, the depth of elements and the length
// of each text are limited.
//
// Entry.AllowedByLocation and Options.StrictLocation say whether the location of a sitemap entitles
// it to list a URL. Whether a URL may be visited is decided by the robots.txt of the URL, not here.
package sitemap
