-- The lanes of an origin, as package schedule has them. Even lanes are timed: a
-- sorted set by time. The others are lists, one for each rank; r:ORIGIN:LANE holds
-- the ranks above 0 of which there is a list. Lane 14 holds pages that rest, by
-- fingerprint; their records are in x:ORIGIN.
local resting, lasthop, usual = 14, 3, 10

local function isTimed(lane) return lane % 2 == 0 end

local function laneKey(o, lane, rank)
  if isTimed(lane) then return base .. 't:' .. o.name .. ':' .. lane end
  return base .. 'q:' .. o.name .. ':' .. lane .. ':' .. rank
end

local function count(o, lane, n)
  add(o, 'L' .. lane, n)
  if lane == resting then return end
  add(o, 'n', n)
  if lane <= lasthop then add(o, 'y', n) end
end

-- enqueue puts a record into a list: at its head, or behind the others.
local function enqueue(o, lane, rank, record, command)
  local length = call(command, laneKey(o, lane, rank), record)
  if length == 1 and rank > 0 then
    call('ZADD', base .. 'r:' .. o.name .. ':' .. lane, rank, rank)
  end
  count(o, lane, 1)
end

-- put queues a record behind those of its lane and rank; where what is put last
-- goes first, before them.
local function put(o, lane, rank, record)
  enqueue(o, lane, rank, record, (lane == 1 or lane == 5) and 'LPUSH' or 'RPUSH')
end

-- putOff queues a record to be handed out not before at.
local function putOff(o, lane, at, record)
  add(o, 'u', 1) -- tells records apart that are the same
  call('ZADD', laneKey(o, lane), at, string.format('%012x', get(o, 'u')) .. record)
  count(o, lane, 1)
end

-- rest lets a page rest until at.
local function rest(o, print, at, record)
  call('HSET', base .. 'x:' .. o.name, print, record)
  if call('ZADD', laneKey(o, resting), at, print) == 1 then count(o, resting, 1) end
end

-- park keeps a record aside.
local function park(o, record)
  call('RPUSH', base .. 'k:' .. o.name, record)
  add(o, 'g', 1)
  add(meta, 'parked', 1)
  call('SADD', base .. 'k', o.name)
end

local function isDue(o, lane)
  if get(o, 'L' .. lane) == 0 then return false end
  if not isTimed(lane) then return true end
  local _, at = first(laneKey(o, lane))
  return at ~= nil and at <= now
end

-- turn returns the lane whose turn it is, or nil. Pages that rest take turns with
-- the lower classes.
local function turn(o)
  local lane
  for l = 0, resting - 1 do
    if isDue(o, l) then
      lane = l
      break
    end
  end
  local revisit = isDue(o, resting) and (not lane or lane >= usual and get(o, 'T') == 0)
  set(o, 'T', revisit and 1 or 0)
  return revisit and resting or lane
end

-- takeFirst takes a record out of the lists of a lane, the lowest rank first.
local function takeFirst(o, lane)
  local record = call('LPOP', laneKey(o, lane, 0))
  if record then return record, 0 end
  local ranks = base .. 'r:' .. o.name .. ':' .. lane
  local rank = first(ranks)
  if not rank then return nil end
  local key = laneKey(o, lane, rank)
  record = call('LPOP', key)
  if call('LLEN', key) == 0 then call('ZREM', ranks, rank) end
  return record, tonumber(rank)
end

-- take takes the first record of a lane out of it: what a lease keeps, so that it
-- can be put back just there.
local function take(o, lane)
  local l = {o = o.name, lane = lane, rank = 0, at = 0, print = ''}
  if isTimed(lane) then
    local key = laneKey(o, lane)
    local member, at = first(key)
    if not member then return nil end
    call('ZREM', key, member)
    l.at = at
    if lane == resting then
      l.print, l.record = member, call('HGET', base .. 'x:' .. o.name, member)
      call('HDEL', base .. 'x:' .. o.name, member)
    else
      l.seq, l.record = string.sub(member, 1, 12), string.sub(member, 13)
    end
  else
    l.record, l.rank = takeFirst(o, lane)
  end
  if not l.record then return nil end
  count(o, lane, -1)
  return l
end

-- undo puts what take took back where it was.
local function undo(o, l)
  if l.lane == resting then
    rest(o, l.print, l.at, l.record)
  elseif isTimed(l.lane) then
    call('ZADD', laneKey(o, l.lane), l.at, l.seq .. l.record)
    count(o, l.lane, 1)
  else
    enqueue(o, l.lane, l.rank, l.record, 'LPUSH')
  end
end

-- ready returns from when on a record of the origin may be handed out, or nil.
local function ready(o)
  local at, hop
  for lane = 0, resting do
    if get(o, 'L' .. lane) > 0 then
      local _, from = nil, 0
      if isTimed(lane) then _, from = first(laneKey(o, lane)) end
      if lane <= lasthop then
        hop = math.min(hop or from, from)
      else
        at = math.min(at or from, from)
      end
    end
  end
  if at then at = math.max(at, get(o, 'e')) end
  if hop and (not at or hop < at) then at = hop end
  return at
end
