package crawler

// NewTicket makes a ticket that is of no crawl.
var NewTicket = newTicket
