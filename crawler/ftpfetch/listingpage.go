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

// listingType is the content type of a listing.
const listingType = "text/html; charset=utf-8"

// listing returns a page with a link to each entry of the directory, in the order
// of their names, and whether it had to be cut to be no longer than limit.
func listing(directory string, entries []*ftp.Entry, limit int64) (page []byte, cut bool) {
	title := html.EscapeString(strings.ToValidUTF8(directory, "\uFFFD"))
	b := bytes.NewBufferString("<!DOCTYPE html>\n<title>" + title + "</title>\n")
	for _, name := range names(entries) {
		// ./ keeps a colon from ending a scheme.
		link := fmt.Sprintf("<a href=\"./%s\">%s</a><br>\n", html.EscapeString(escaped(name)), html.EscapeString(strings.ToValidUTF8(name, "\uFFFD")))
		if int64(b.Len()+len(link)) > limit {
			return b.Bytes(), true
		}
		b.WriteString(link)
	}
	return b.Bytes(), false
}

// names returns the names of the entries that a URL in the directory can have,
// sorted; those of directories end in a slash.
func names(entries []*ftp.Entry) []string {
	var names []string
	for _, e := range entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, `/\`) || !sendable(e.Name) {
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

// escaped returns the path of a name.
func escaped(name string) string {
	name, isDir := strings.CutSuffix(name, "/")
	name = url.PathEscape(name)
	if isDir {
		name += "/"
	}
	return name
}
