package ftpfetch

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/jlaffaye/ftp"
)

// listingContentType is the content type of a listing.
const listingContentType = "text/html; charset=utf-8"

// listingPage returns a page with a link to each entry of the directory, in the order
// of their names, and whether it had to be cut to be no longer than limit.
func listingPage(directory string, entries []*ftp.Entry, limit int64) (page []byte, truncated bool) {
	title := html.EscapeString(strings.ToValidUTF8(directory, "\uFFFD"))
	b := bytes.NewBufferString("<!DOCTYPE html>\n<title>" + title + "</title>\n")
	for _, name := range entryNames(entries) {
		// ./ keeps a colon from ending a scheme.
		link := fmt.Sprintf("<a href=\"./%s\">%s</a><br>\n", html.EscapeString(escapeEntryName(name)), html.EscapeString(strings.ToValidUTF8(name, "\uFFFD")))
		if int64(b.Len()+len(link)) > limit {
			return b.Bytes(), true
		}
		b.WriteString(link)
	}
	return b.Bytes(), false
}

// entryNames returns the names of the entries that a URL in the directory can have,
// sorted; those of directories end in a slash.
func entryNames(entries []*ftp.Entry) []string {
	var names []string
	for _, e := range entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, `/\`) || !isSafeInCommand(e.Name) {
			continue
		}
		name := e.Name
		if e.Type == ftp.EntryTypeFolder {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// escapeEntryName returns the path of a name.
func escapeEntryName(name string) string {
	name, isDir := strings.CutSuffix(name, "/")
	name = url.PathEscape(name)
	if isDir {
		name += "/"
	}
	return name
}
