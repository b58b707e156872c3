package ftpfetch

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/jlaffaye/ftp"

	"github.com/decorum-crawler/decorum"
)

// entryMemoryFactor is how many bytes of memory an entry of a listing takes, parsed and as part of
// the page, for each byte of its line.
const entryMemoryFactor = 4

// fetchListing sets res to a page with the entries of the directory name. It changes into the
// directory first, because some servers interpret an argument of LIST as options or a pattern.
func (s *session) fetchListing(name string, res *decorum.Response) error {
	inside := strings.TrimSuffix(name, "/")
	if err := s.client.ChangeDir(cmp.Or(inside, "/")); err != nil {
		return markNotFound(err)
	}
	res.Status = http.StatusOK
	res.Header.Set("Content-Type", listingContentType)
	if !s.ticket.WantsContentType(listingContentType, s.cfg.ContentTypes) {
		res.BodyLimitExceeded = true
		return nil
	}
	s.isListing = true
	entries, err := s.client.List("")
	truncated := s.dataConn != nil && s.dataConn.remaining == 0
	if err = errorUnlessComplete(err); err != nil && !truncated {
		return err
	}
	res.Body, res.BodyLimitExceeded = listingPage(name, entries, s.maxBodyBytes)
	res.BodyLimitExceeded = res.BodyLimitExceeded || truncated
	return nil
}

// listingContentType is the content type of a listing.
const listingContentType = "text/html; charset=utf-8"

// listingPage returns a page with a link to each entry of the directory, sorted by name. truncated
// says that the page was cut at limit bytes.
func listingPage(directory string, entries []*ftp.Entry, limit int64) (page []byte, truncated bool) {
	title := html.EscapeString(strings.ToValidUTF8(directory, "\uFFFD"))
	b := bytes.NewBufferString("<!DOCTYPE html>\n<title>" + title + "</title>\n")
	for _, name := range entryNames(entries) {
		// ./ keeps a colon from ending a scheme.
		link := fmt.Sprintf("<a href=\"./%s\">%s</a><br>\n", html.EscapeString(escapeEntryName(name)),
			html.EscapeString(strings.ToValidUTF8(name, "\uFFFD")))
		if int64(b.Len()+len(link)) > limit {
			return b.Bytes(), true
		}
		b.WriteString(link)
	}
	return b.Bytes(), false
}

// entryNames returns the sorted names of the entries that a URL in the directory can name; those of
// directories end in a slash.
func entryNames(entries []*ftp.Entry) []string {
	var names []string
	for _, e := range entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." ||
			strings.ContainsAny(e.Name, `/\`) || !isSafeInCommand(e.Name) {
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

// escapeEntryName returns the URL path of name, relative to its directory.
func escapeEntryName(name string) string {
	name, isDir := strings.CutSuffix(name, "/")
	name = url.PathEscape(name)
	if isDir {
		name += "/"
	}
	return name
}
