// Package sitemap reads sitemaps: lists of URLs that a site offers to
// crawlers.
//
// It reads the XML and the plain text form of sitemaps.org, sitemap indexes,
// and the items of RSS 0.9 to 2.0, Atom and JSON feeds, compressed with gzip or not,
// in UTF-8, UTF-16 or the encoding that the XML declares. It is a pure
// streaming parser: it fetches nothing, and whatever the length of the file,
// it holds no more than one entry in memory.
//
// Read hands over the entries of one file as it comes to them, to a func that may
// stop it by an error. What it makes of each field, an Entry says; what limits hold,
// and whether the file may speak for other places than its own, Options. An index
// is a file whose entries are further files: to read those is up to the caller.
//
// Much that is published is wrong in small ways, so content decides, and what
// can be understood is:
//
//   - The name of a file, its media type and its XML namespace count for
//     nothing, its first bytes and its root element for all.
//   - A bare "&" stands for itself. The five entities of XML and numeric
//     references are known; text with any other is not used.
//   - Relative locations are resolved against the sitemap's own URL, or what
//     xml:base of a feed says.
//   - Where a file breaks off or is broken, what was read stands, and the error
//     says where that was.
//   - What cannot be used is passed over; Options.OnEntryError is told of it.
//
// Entries are pages and further sitemaps, nothing else. What the image, video,
// news and other extensions add is skipped. So are the alternates of xhtml:link:
// each language version is to be listed as an entry of its own, with the same
// alternates, so they would only repeat what the file says anyway.
//
// A file can do no harm. External entities are not read and declared ones not
// expanded; the size, the ratio of decompression, the number of entries, the
// depth of elements and the length of each text have limits.
//
// Whether a sitemap may speak for the URLs it lists is a question of its place:
// see Entry.AllowedByLocation and Options.StrictLocation. Whether a URL may be visited is for its
// own robots.txt to say, as ever.
package sitemap
