package decorum

import "strings"

// resolveFast resolves the links that pages are full of: those whose bytes
// stand in the canonical URL as they stand in ref. It only looks, and copies
// at most once. It reports false whenever it is not sure of what the full
// parser says.
func resolveFast[T text](base URL, ref T) (u URL, ok bool) {
	if len(base.s)+len(ref) > maxURL {
		return URL{}, false
	}
	if path := scanOrigin(base, ref); path > 0 {
		end, ok := scanPath(ref, path+1)
		return URL{s: string(ref[:end]), path: uint32(path)}, ok
	}
	if base.IsZero() {
		return URL{}, false
	}
	if len(ref) == 0 || ref[0] == '#' {
		return base, true
	}
	var keep, from, end int // of base; of ref
	switch ref[0] {
	case '/':
		if len(ref) > 1 && ref[1] == '/' {
			return URL{}, false
		}
		keep = int(base.path)
		end, ok = scanPath(ref, 1)
	case '?':
		keep = base.pathEnd()
		end, ok = scanQuery(ref, 1)
	default:
		keep, from = climb(base, ref)
		end, ok = scanPath(ref, from)
	}
	if !ok {
		return URL{}, false
	}
	return URL{s: join(base.s[:keep], ref[from:end]), path: base.path}, true
}

// join returns a and b as one string. If that is short, it is the only copy.
func join[T text](a string, b T) string {
	var buf [256]byte
	return string(append(append(buf[:0], a...), b...))
}

// scanOrigin returns where the path begins in ref, if ref begins with a
// canonical origin and a slash, and 0 if not, or if that takes more than a
// look: ports, addresses, Punycode. The origin of base needs none.
func scanOrigin[T text](base URL, ref T) (path int) {
	if n := int(base.path); n > 0 && len(ref) > n && ref[n] == '/' && string(ref[:n]) == base.s[:n] {
		return n
	}
	host := schemeEnd(ref)
	if host == 0 {
		return 0
	}
	start := host // of a label
	for i := host; i < len(ref); i++ {
		c := ref[i]
		if is(c, inName) || c == '-' {
			continue
		}
		if label := ref[start:i]; len(label) >= len("xn--") && string(label[:4]) == "xn--" && !isSettledPunycode(label[4:]) {
			return 0
		}
		switch {
		case c == '.':
			start = i + 1
		case c == '/' && ref[start] > '9' && i-host <= maxHost: // no number, not empty
			return i
		default:
			return 0
		}
	}
	return 0
}

// schemeEnd returns where the host begins in ref, 0 if no canonical scheme
// stands before it.
func schemeEnd[T text](ref T) int {
	switch {
	case len(ref) > 8 && string(ref[:8]) == "https://":
		return 8
	case len(ref) > 7 && string(ref[:7]) == "http://":
		return 7
	case len(ref) > 6 && string(ref[:6]) == "ftp://":
		return 6
	}
	return 0
}

// scanPath looks at path and query in ref, of which a segment begins at i,
// and returns where they end: at the fragment or the end of ref.
func scanPath[T text](ref T, i int) (end int, ok bool) {
	segment := i
	for ; i < len(ref); i++ {
		c := ref[i]
		if is(c, inSegment) {
			continue
		}
		switch {
		case c == '/' && !isDots(ref[segment:i]):
			segment = i + 1
		case c == ':' && segment > 0: // else it may end a scheme
		case c == '%' && isNormalEscape(ref[i:]):
			i += len("2F")
		case c == '?' && !isDots(ref[segment:i]):
			return scanQuery(ref, i+1)
		case c == '#':
			return i, !isDots(ref[segment:i])
		default:
			return 0, false
		}
	}
	return i, !isDots(ref[segment:])
}

// scanQuery is scanPath within the query.
func scanQuery[T text](ref T, i int) (end int, ok bool) {
	for ; i < len(ref); i++ {
		c := ref[i]
		switch {
		case is(c, inQuery):
		case c == '%' && isNormalEscape(ref[i:]):
			i += len("2F")
		case c == '#':
			return i, true
		default:
			return 0, false
		}
	}
	return i, true
}

// isDots reports whether segment is "." or "..".
func isDots[T text](segment T) bool {
	n := len(segment)
	return n == 1 && segment[0] == '.' || n == 2 && segment[0] == '.' && segment[1] == '.'
}

// isNormalEscape reports whether s, which begins with a percent sign, begins
// with an escape that stays as it is.
func isNormalEscape[T text](s T) bool {
	return len(s) >= len("%2F") && is(s[1], hexDigit) && is(s[2], hexDigit) &&
		s[1] < 'a' && s[2] < 'a' && !is(unhex(s[1])<<4|unhex(s[2]), unreserved)
}

// climb follows the segments "." and ".." that ref begins with. It returns
// how much of base is kept, a directory, and what of ref is to follow it.
func climb[T text](base URL, ref T) (keep, from int) {
	keep = directory(base.s, int(base.path), base.pathEnd())
	for {
		switch rest := ref[from:]; {
		case len(rest) >= 2 && rest[0] == '.' && rest[1] == '/':
			from += len("./")
		case len(rest) >= 3 && rest[0] == '.' && rest[1] == '.' && rest[2] == '/':
			from += len("../")
			keep = parent(base.s, int(base.path), keep)
		default:
			return keep, from
		}
	}
}

// pathEnd returns where u's path ends and its query may begin.
func (u URL) pathEnd() int {
	if i := strings.IndexByte(u.s, '?'); i >= 0 {
		return i
	}
	return len(u.s)
}
