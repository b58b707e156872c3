// Package extract reads what a crawler needs from an HTML page and its response header: the links,
// the title, the canonical URL and the directives for robots.
//
//	scanner := new(extract.Scanner)
//	doc := scanner.ScanPage(body, "text/html", pageURL) // nil if the page is not HTML
//	for _, link := range doc.Links {
//		fmt.Println(link.Kind, link.URL)
//	}
//
// The package makes one pass over the bytes, builds no tree, and finds the links that a full parser
// finds. It follows the rules of the HTML standard's tokenizer for tags, attributes, comments and
// elements whose content is text (script, style, title, textarea, iframe and similar ones), so it
// ignores links in comments and scripts. In svg and math it follows the rules for foreign content. It
// reads every encoding of the Encoding standard, and writes the queries of links in that of the page.
// It deviates from these rules where a crawler must:
//
//   - It runs no scripts, so the content of noscript counts as content.
//   - A frame counts anywhere in the page, and so does the content of a frameset.
//   - A page in the srcdoc attribute of an iframe counts as a part of its page.
//   - In XHTML, a self-closing script, style or title is empty, and CDATA sections are text anywhere.
//
// Begin reading at Scanner.ScanPage. A Scanner reads one page after the other; its fields say whether
// forms, images and other resources count as links, and how many links it takes. Its ScanResult has the
// links in the order of the page, each with the kind of element that mentions it. Scanner.ScanHeaderLinks
// reads the header fields Link and Refresh, and Scanner.ScanStyleSheet reads a style sheet.
// ScanResult.RobotsDirectivesFor combines X-Robots-Tag with the page's meta elements.
// IsFeedContentType recognises a feed by its content type.
//
// The package decides nothing: the frontier decides which links to follow, and the caller of
// RobotsDirectivesFor decides whether the page may be indexed. It starts no goroutine and has no lock.
package extract
