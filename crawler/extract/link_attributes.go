package extract

import (
	"bytes"
	"iter"
)

// isCrawlableHref reports whether a link may lead to a page: it is neither empty nor just a
// fragment, and its scheme, if it has one, is http, https or ftp.
func isCrawlableHref(ref []byte) bool {
	if len(ref) == 0 || ref[0] == '#' {
		return false
	}
	for i, c := range ref {
		switch {
		case c == ':':
			scheme := ref[:i]
			return equalFold(scheme, "https") || equalFold(scheme, "http") || equalFold(scheme, "ftp")
		case !isAlphanumeric(c) && c != '+' && c != '-' && c != '.':
			return true
		}
	}
	return true
}

// srcsetURLs yields the URLs of a srcset attribute (HTML standard §4.8.4.2.2), without their widths and
// densities.
func srcsetURLs(s []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			s = bytes.TrimLeft(s, whitespace+",")
			end := indexAnyOrEnd(s, whitespace)
			url := bytes.TrimRight(s[:end], ",")
			if len(url) == 0 || !yield(url) {
				return
			}
			if s = s[end:]; len(url) == end { // no comma follows the URL, so descriptors do
				s = skipDescriptors(s)
			}
		}
	}
}

// skipDescriptors returns what follows the descriptors at the start of s. They end at a comma outside
// parentheses.
func skipDescriptors(s []byte) []byte {
	nested := false
	for i, c := range s {
		switch {
		case c == '(':
			nested = true
		case c == ')':
			nested = false
		case c == ',' && !nested:
			return s[i+1:]
		}
	}
	return nil
}
