-- Tables of what belongs to an exchange each.

local lists = {}

-- The first that is it.
function lists.first(list, is_it)
    for _, entry in pairs(list) do
        if is_it(entry) then
            return entry
        end
    end
    return nil
end

-- Takes out what belongs to an exchange.
function lists.remove(list, exchange)
    for at = #list, 1, -1 do
        if list[at].exchange == exchange then
            table.remove(list, at)
        end
    end
end

return lists
