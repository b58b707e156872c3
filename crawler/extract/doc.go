// Package extract reads from an HTML page, and from the header it came with,
// what a crawler needs: its links, its title, its canonical URL and what it says
// to robots.
//
// It makes one pass over the bytes and builds no tree, and finds the links that
// a full parser finds. Tags, attributes, comments and the elements whose content
// is text (script, style, title, textarea, iframe and their kin) are read by the
// rules of the HTML standard's tokenizer, so a link in a comment or in a script
// is none; svg and math by those for foreign content. It leaves these rules
// where a crawler must:
//
//   - it runs no scripts, so the content of noscript is content;
//   - a frame counts wherever it stands, and so does what stands in a frameset;
//   - in XHTML a script, style or title that closes itself is empty, and CDATA
//     sections are text anywhere.
//
// Begin reading at Scanner.ScanPage. A Scanner reads one page after the other, by settings
// that say whether images are links, and how many links are taken. It returns a ScanResult:
// links in the order of the page, each with what points to it. Header fields that link, Link
// and Refresh, are read by Scanner.ScanHeaderLinks, and X-Robots-Tag with the page's own meta
// elements by ScanResult.RobotsDirectivesFor. IsFeedContentType tells a feed by its content type.
//
// It decides nothing: which links to follow is the frontier's part, and
// whether a page may be indexed is for whoever asks ScanResult.RobotsDirectivesFor.
package extract
