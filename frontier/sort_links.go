package frontier

import "strings"

// IsSortLink reports whether a URL with this path and query asks for a list in another order, and for nothing
// else: the query has only parameters that sort, as in the links at the head of a directory listing. A page of
// a sorted list, such as /list?sort=price&page=2, is not a sort link, because nothing else may lead to it.
func IsSortLink(pathAndQuery string) bool {
	_, query, _ := strings.Cut(pathAndQuery, "?")
	sorts := false
	for param := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(param, "=")
		if sorts = isSortParam(name, value); !sorts {
			return false
		}
	}
	return sorts
}

// isSortParam reports whether a query parameter gives the order of a list. The value must be one that the
// software knows or, for names that mean an order everywhere, look like a direction or the name of a column:
// dir=photos may name a directory, and order=1017 an order in a shop.
func isSortParam(name, value string) bool {
	switch name {
	case "C": // Apache and nginx: the column
		return len(value) == 1 && strings.Contains("NMSD", value)
	case "O", "N", "M", "S", "D": // Apache: the direction; before version 2, of the column of that name
		return value == "A" || value == "D"
	case "s": // cgit
		return value == "name" || value == "desc" || value == "owner" || value == "idle"
	case "o": // gitweb
		return value == "project" || value == "descr" || value == "owner" || value == "age"
	}
	switch strings.ToLower(name) {
	case "dir", "direction", "sortdir", "sort_dir", "sortorder", "sort_order", "product_list_dir":
		return isSortDirection(value)
	case "sort", "sortby", "sort_by", "order", "orderby", "order_by", "product_list_order":
		return isColumnName(value)
	}
	return false
}

// isSortDirection reports whether s is asc or desc, or the longer form of it, in any case.
func isSortDirection(s string) bool {
	switch strings.ToLower(s) {
	case "asc", "desc", "ascending", "descending":
		return true
	}
	return false
}

// maxColumnName is the length of the longest name of a column, in bytes.
const maxColumnName = 32

// isColumnName reports whether s may name columns of a list, as price, -date and pd.name:desc do.
func isColumnName(s string) bool {
	hasLetter := false
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			hasLetter = true
		case !strings.Contains("-_.,:+", s[i:i+1]):
			return false
		}
	}
	return hasLetter && len(s) <= maxColumnName
}
