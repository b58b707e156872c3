// Package extract reads from an HTML page what a crawler needs of it: its
// links, its title, its canonical URL and what it says to robots.
//
// It makes one pass over the bytes and builds no tree. Tags, attributes,
// comments and the elements whose content is text (script, style, title,
// textarea, iframe and their kin) are read by the rules of the HTML standard's
// tokenizer, so a link in a comment or in a script is none. It leaves those
// rules where a crawler must:
//
//   - it runs no scripts, so the content of noscript is content;
//   - the title of an svg is not the page's;
//   - a CDATA section is text inside svg and math and in XHTML, and a comment
//     up to the next ">" elsewhere;
//   - in XHTML a script, style or title that closes itself is empty.
//
// It decides nothing: which links to follow is the frontier's part, and
// whether a page may be indexed is for whoever asks Document.Directives.
package extract
