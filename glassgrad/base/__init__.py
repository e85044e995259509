"""The foundation: dtypes, settings, errors, events, origins. Imports no other part of the
package.
"""
