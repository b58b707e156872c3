-- lease(clock, ttl, dueBy, defaultDelay, token…) → sum, leases: at most one record
-- for each token, of hosts that are due by now and by bound, longest due first. A
-- lease is its token, expiry, origin, record, the clock of its host, and since when
-- that was due. Without tokens it only says what there is.

-- detectFailover finds that this is not the reign under which the partition was served last: the
-- server was restarted, or is a replica that took over, be it one that had served before,
-- and may not know the last leases and due times. So nothing is handed out until the
-- longest lease has run out, and then each host rests once more, for a visit may have
-- ended just before. A master has a replication id that is of its reign alone.
local function detectFailover()
  local replicationID = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
  if not replicationID then error('the server does not tell master_replid') end
  if meta.fields.reign == replicationID then return end
  if getNumber(meta, 'longest') > 0 then
    setField(meta, 'fence', now + getNumber(meta, 'longest'))
    addToField(meta, 'epoch', 1)
  end
  setField(meta, 'reign', replicationID)
end

local ttl, dueBy, defaultDelay = tonumber(ARGV[2]), parseTime(ARGV[3]), tonumber(ARGV[4])

-- owesNoFailoverDelay reports whether the host owes no rest for a failover.
local function owesNoFailoverDelay(h)
  if getNumber(h, 'f') == getNumber(meta, 'epoch') then return true end
  setField(h, 'f', getNumber(meta, 'epoch'))
  local delay = getNumber(h, 'gap')
  delayHost(h, getNumber(meta, 'fence') + (delay > 0 and delay or defaultDelay))
  requeueHost(h)
  return false
end

local function storeLease(o, h, l, token, at)
  call('HSET', keyPrefix .. 'l', token, cmsgpack.pack(l))
  call('ZADD', keyPrefix .. 'o', now + ttl, token)
  addToField(o, 'out', 1)
  addToField(h, 'out', 1)
  setField(o, 's', now)
  h.lastTurn = now
  updateOrigin(o)
  return {token, now + ttl, l.o, l.record, getNumber(h, 'due'), getNumber(h, 'gap'), getNumber(h, 'slots'), getNumber(h, 'strikes'), h.fields.memo or '', at}
end

local more, leases = endHolds(), {}
more = expireLeases() or more
detectFailover()
-- It was announced; but a server for which durability none is enough may have lost that.
if #ARGV > 4 then setField(meta, 'longest', math.max(getNumber(meta, 'longest'), ttl)) end
local i = 5 -- the next token
while ARGV[i] and not more and now >= getNumber(meta, 'fence') do
  local name, at = firstMember(keyPrefix .. 'd')
  if not name or at > now or at > dueBy then break end
  local h = loadHost(name)
  if owesNoFailoverDelay(h) then
    local o = findOrigin((firstMember(keyPrefix .. 'p:' .. name)))
    local lane = nextLane(o)
    local l = lane and takeRecord(o, lane)
    if l then
      leases[#leases + 1] = storeLease(o, h, l, ARGV[i], at)
      i = i + 1
    else
      -- What was counted and is not there is not waited for any longer.
      if lane then addToLaneLength(o, lane, -getNumber(o, 'L' .. lane)) else setField(o, 's', now + 1000000) end
      updateOrigin(o)
    end
  end
end
return {saveChanges(more), leases}
