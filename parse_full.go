package decorum

import "strings"

// resolveFull is the basic URL parser of the WHATWG URL standard for the schemes of the crawl. These
// need only a few of its states: there are no opaque paths and no file URLs, and user information
// and fragment are dropped.
func resolveFull(base URL, ref string) (URL, error) {
	scheme, rest, err := cutScheme(stripBlanksAndFragment(ref))
	if err != nil {
		return URL{}, err
	}
	baseScheme := base.Origin().Scheme()
	slashes := len(rest) - len(strings.TrimLeft(rest, `/\`))
	var buf [512]byte
	b := buf[:0]
	// A ref with the scheme of base, or without one, is relative unless two slashes follow.
	switch {
	case base.IsZero() && scheme == "":
		return URL{}, errRelative
	case scheme == "" || scheme == baseScheme:
		if slashes < 2 {
			return resolvePath(b, base, rest)
		}
		scheme = baseScheme
	}
	// The ref is absolute: a host follows the slashes.
	authority, after := cutBeforeAny(rest[slashes:], `/\?`)
	b = append(append(b, scheme...), "://"...)
	if b, err = appendAuthority(b, authority, scheme); err != nil {
		return URL{}, err
	}
	return appendRefPathAndQuery(b, len(b), after)
}

// resolvePath resolves ref, which has neither scheme nor authority, against base. b is an empty
// buffer.
func resolvePath(b []byte, base URL, ref string) (URL, error) {
	page, _, _ := strings.Cut(base.s, "?")
	path := int(base.pathStart)
	switch {
	case ref == "":
		return base, nil
	case ref[0] == '?':
		b = append(b, page...)
	case ref[0] == '/' || ref[0] == '\\':
		b = append(b, base.s[:path]...)
	default:
		b = append(b, page[:strings.LastIndexByte(page, '/')+1]...)
	}
	return appendRefPathAndQuery(b, path, ref)
}

// appendRefPathAndQuery appends path and query of ref to b and returns the URL. The path in b, which
// may still be empty, begins at path.
func appendRefPathAndQuery(b []byte, path int, ref string) (URL, error) {
	refPath, query, hasQuery := strings.Cut(ref, "?")
	if refPath != "" || len(b) == path {
		b = appendPath(b, path, refPath)
	}
	if hasQuery {
		b = appendPercentNormalized(append(b, '?'), query, inQuery)
	}
	if len(b) > maxURLBytes {
		return URL{}, errTooLong
	}
	return URL{s: string(b), pathStart: uint32(path)}, nil
}

// appendPath appends the segments of refPath to the path b[path:], which is empty or a directory
// that ends in a slash.
func appendPath(b []byte, path int, refPath string) []byte {
	if len(b) == path {
		b = append(b, '/')
		if refPath != "" && (refPath[0] == '/' || refPath[0] == '\\') {
			refPath = refPath[1:]
		}
	}
	for {
		segment, rest := cutBeforeAny(refPath, `/\`)
		start := len(b)
		b = appendPercentNormalized(b, segment, inPath)
		switch string(b[start:]) { // the normalized segment, in which %2e has become a dot
		case ".":
			b = b[:start]
		case "..":
			b = b[:parentDirectoryEnd(b, path, start)]
		default:
			if rest != "" {
				b = append(b, '/')
			}
		}
		if rest == "" {
			return b
		}
		refPath = rest[1:]
	}
}

// directoryEnd returns the end of the directory of the path s[path:end]: the index after its last
// slash.
func directoryEnd[T byteSeq](s T, path, end int) int {
	for end > path+1 && s[end-1] != '/' {
		end--
	}
	return end
}

// parentDirectoryEnd returns the end of the parent of the directory s[path:end]. The root is its own
// parent.
func parentDirectoryEnd[T byteSeq](s T, path, end int) int {
	return directoryEnd(s, path, max(end-1, path+1))
}

// stripBlanksAndFragment returns ref without its fragment and without the characters that the
// standard ignores: blanks and control characters around it, tabs and line ends within it.
func stripBlanksAndFragment(ref string) string {
	for i := range len(ref) { // most links contain none of them
		if ref[i] == '#' {
			return ref[:i]
		}
		if ref[i] <= ' ' {
			return stripBlanksAndFragmentSlow(ref)
		}
	}
	return ref
}

// stripBlanksAndFragmentSlow is stripBlanksAndFragment for a ref that contains blanks or control
// characters.
func stripBlanksAndFragmentSlow(ref string) string {
	ref = strings.TrimFunc(ref, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(ref, "\t\n\r") {
		ref = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(ref)
	}
	ref, _, _ = strings.Cut(ref, "#")
	return ref
}

// cutScheme cuts the scheme off ref and returns it in lower case, "" if ref has none. It returns
// errScheme for a scheme other than http, https and ftp.
func cutScheme(ref string) (scheme, rest string, err error) {
	end := strings.IndexByte(ref, ':')
	if end < 1 || !isScheme(ref[:end]) {
		return "", ref, nil
	}
	for _, scheme := range []string{"http", "https", "ftp"} {
		if strings.EqualFold(ref[:end], scheme) {
			return scheme, ref[end+1:], nil
		}
	}
	return "", "", errScheme
}

// isScheme reports whether s has the form of a scheme: a letter, then letters, digits and "+-.".
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// appendAuthority appends host and port of authority in canonical form. It drops the user
// information, which ends with the last "@".
func appendAuthority(b []byte, authority, scheme string) ([]byte, error) {
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	port := ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	b, err := appendHost(b, host)
	if err != nil {
		return b, err
	}
	return appendNonDefaultPort(b, port, scheme)
}

// cutBeforeAny cuts s before its first byte that is in chars.
func cutBeforeAny(s, chars string) (before, from string) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
