-- lease(clock, ttl, bound, default rest, token…) → sum, leases: at most one record
-- for each token, of hosts that are due by now and by bound, longest due first. A
-- lease is its token, expiry, origin, record, the clock of its host, and since when
-- that was due. Without tokens it only says what there is.

-- fence finds that this is not the reign under which the partition was served last: the
-- server was restarted, or is a replica that took over, be it one that had served before,
-- and may not know the last leases and due times. So nothing is handed out until the
-- longest lease has run out, and then each host rests once more, for a visit may have
-- ended just before. A master has a replication id that is of its reign alone.
local function fence()
  local reign = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
  if not reign then error('the server does not tell master_replid') end
  if meta.is.reign == reign then return end
  if get(meta, 'longest') > 0 then
    set(meta, 'fence', now + get(meta, 'longest'))
    add(meta, 'epoch', 1)
  end
  set(meta, 'reign', reign)
end

local ttl, bound, default = tonumber(ARGV[2]), moment(ARGV[3]), tonumber(ARGV[4])

-- hasRested reports whether the host owes no rest for a failover.
local function hasRested(h)
  if get(h, 'f') == get(meta, 'epoch') then return true end
  set(h, 'f', get(meta, 'epoch'))
  local gap = get(h, 'gap')
  lengthen(h, get(meta, 'fence') + (gap > 0 and gap or default))
  seat(h)
  return false
end

local function begin(o, h, l, token, at)
  call('HSET', base .. 'l', token, cmsgpack.pack(l))
  call('ZADD', base .. 'o', now + ttl, token)
  add(o, 'out', 1)
  add(h, 'out', 1)
  set(o, 's', now)
  h.turn = now
  update(o)
  return {token, now + ttl, l.o, l.record, get(h, 'due'), get(h, 'gap'), get(h, 'slots'), get(h, 'strikes'), h.is.memo or '', at}
end

local more, leases = wake(), {}
more = expire() or more
fence()
-- It was announced; but a server for which durability none is enough may have lost that.
if #ARGV > 4 then set(meta, 'longest', math.max(get(meta, 'longest'), ttl)) end
local i = 5 -- the next token
while ARGV[i] and not more and now >= get(meta, 'fence') do
  local name, at = first(base .. 'd')
  if not name or at > now or at > bound then break end
  local h = host(name)
  if hasRested(h) then
    local o = origin((first(base .. 'p:' .. name)))
    local lane = turn(o)
    local l = lane and take(o, lane)
    if l then
      leases[#leases + 1] = begin(o, h, l, ARGV[i], at)
      i = i + 1
    else
      -- What was counted and is not there is not waited for any longer.
      if lane then count(o, lane, -get(o, 'L' .. lane)) else set(o, 's', now + 1000000) end
      update(o)
    end
  end
end
return {finish(more), leases}
